// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "planners/chen/chen.h"
#include "planners/chen/search.h"
#include "planners/chen/segments.h"
#include "planners/schedule/work_budget.h"
#include "planners/windows/plan_windows.h"

namespace hw::planners {
namespace {

using namespace hw::core;
using namespace hw::planners::chen;
using Cuts = std::vector<Cut>;

constexpr int kBounds = 40;                // values of B
constexpr int kInnerBounds = 8;            // values of the second bound
constexpr std::int64_t kWork = 1'000'000;  // ops replayed, about a second

// Values of a bound on bytes, evenly spaced in the logarithm, highest first.
std::vector<std::int64_t> logarithmicGrid(std::int64_t low, std::int64_t high, int count) {
    std::vector<std::int64_t> grid;
    grid.reserve(count);
    const double ratio =
        static_cast<double>(high) / static_cast<double>(std::max<std::int64_t>(low, 1));
    for (int i = 0; i < count; ++i)
        grid.push_back(std::llround(static_cast<double>(high) *
                                    std::pow(ratio, -static_cast<double>(i) / (count - 1))));
    return grid;
}

class GreedySearch {
public:
    GreedySearch(const TrainingGraph& graph, const PlanRequest& request, const Progress& progress)
        : graph_(graph),
          progress_(progress),
          info_(rebuildInfo(graph)),
          forward_(forwardPass(graph, info_)),
          search_(graph, request.budget),
          left_(request.workLimit.value_or(kWork) /
                std::max<std::int64_t>(1, std::ssize(graph.ops))),
          time_{.seconds = request.timeLimitSeconds.value_or(INFINITY)} {
        for (StorageIndex s = 0; s < static_cast<StorageIndex>(graph.storages.size()); ++s)
            if (forward_.saved[s]) largest_ = std::max(largest_, graph.storages[s].bytes.count());
    }

    Proposal run() {
        search_.consider(keepEverything(graph_, info_, forward_).schedule);
        const std::int64_t total = forward_.savedBytes(0, forward_.end);
        if (total > 0 && !search_.free()) {
            const std::vector<std::int64_t> bounds = logarithmicGrid(largest_, total, kBounds);
            for (int i = 0; i < kBounds && go(); ++i) {
                progress_.report(0.3 * i / kBounds, "searching the segment size");
                segments(bounds[i]);
            }
            const bool oneLevel = search_.found();
            const std::int64_t forTheTail = left_ / 2;
            for (int i = 0; i < kBounds && !oneLevel && left_ > forTheTail && go(); ++i) {
                progress_.report(0.3 + 0.4 * i / kBounds, "splitting the segments");
                furtherLevels(bounds[i]);
            }
            if (search_.found() && !search_.free()) leaveTheTail();
        }
        if (progress_.cancelled()) return cancelledProposal();
        Proposal proposal = search_.proposal("its segments, whatever their size,");
        if (!search_.found() && late()) {
            proposal.status = PlanStatus::TimeLimit;
            proposal.reason = "no segments within the budget were found in time";
        }
        return proposal;
    }

private:
    struct Candidate {
        Cuts cuts;
        bool keepUnsaved = true;
        Nanoseconds time{};
    };

    bool late() const { return time_.secondsLeft() <= 0; }
    bool go() const { return !late() && !progress_.cancelled(); }

    // Appendix A: Algorithm 3 for one bound; the cuts that keep the budget are remembered.
    void segments(std::int64_t bound) {
        for (Cuts cuts : {greedyCuts(forward_, bound), boundedCuts(forward_, bound)})
            attempt({std::move(cuts), true});
    }

    // Segments of segments, for when no single level keeps the budget.
    void furtherLevels(std::int64_t bound) {
        const Cuts greedy = greedyCuts(forward_, bound), bounded = boundedCuts(forward_, bound);
        for (const std::int64_t limit : logarithmicGrid(largest_, bound, kInnerBounds)) {
            if (!go()) return;
            for (const Cuts& cuts : {greedy, bounded})
                for (const bool keepUnsaved : {true, false})
                    attempt({splitFurther(forward_, cuts, limit), keepUnsaved});
        }
    }

    // The fewest of the first cuts that still keep the budget, for every remembered list, the
    // fastest first: behind the last cut nothing is dropped.
    void leaveTheTail() {
        std::vector<Candidate> lists = std::move(fitting_);
        std::stable_sort(lists.begin(), lists.end(),
                         [](const Candidate& a, const Candidate& b) { return a.time < b.time; });
        for (std::size_t i = 0; i < lists.size() && left_ > 0 && go(); ++i) {
            progress_.report(0.7 + 0.3 * static_cast<double>(i) / std::ssize(lists),
                             "leaving the tail");
            const Cuts& cuts = lists[i].cuts;
            std::ptrdiff_t low = 0, high = std::ssize(cuts);
            while (high - low > 1 && left_ > 0 && go()) {
                const std::ptrdiff_t middle = (low + high) / 2;
                const Cuts first(cuts.begin(), cuts.begin() + middle);
                (attempt({first, lists[i].keepUnsaved}) ? high : low) = middle;
            }
        }
    }

    // Whether it keeps the budget.
    bool attempt(Candidate candidate) {
        if (candidate.cuts.empty()) return false;  // everything kept came first
        const auto [known, unseen] =
            fits_.try_emplace({candidate.cuts, candidate.keepUnsaved}, false);
        if (!unseen) return known->second;
        --left_;
        const auto time = search_.consider(
            segmentSchedule(graph_, info_, forward_, candidate.cuts, candidate.keepUnsaved));
        if (!time) return false;
        candidate.time = *time;
        fitting_.push_back(std::move(candidate));
        return known->second = true;
    }

    const TrainingGraph& graph_;
    const Progress& progress_;
    const RebuildInfo info_;
    const ForwardPass forward_;
    Search search_;
    std::int64_t left_;  // candidates
    WorkBudget time_;
    std::int64_t largest_ = 0;  // bytes of the largest feature map
    std::vector<Candidate> fitting_;
    std::map<std::pair<Cuts, bool>, bool> fits_;  // what has been tried
};

}  // namespace

PlannerInfo ChenGreedy::info() {
    return {.name = "chen-greedy",
            .description = "Chen et al. 2016, Algorithm 3 with the search over the segment size",
            .family = PlannerFamily::Chen,
            .colour = 6,
            .quick = true,
            .preselected = true,
            .make = [] { return std::make_unique<ChenGreedy>(); }};
}

Proposal ChenGreedy::plan(const TrainingGraph& graph, const PlanRequest& request,
                          const Progress& progress) const {
    if (auto passes = planPasses(*this, graph, request, progress)) return std::move(*passes);
    return GreedySearch(graph, request, progress).run();
}

}  // namespace hw::planners

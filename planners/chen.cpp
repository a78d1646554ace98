// SPDX-License-Identifier: MIT
#include "planners/chen.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "planners/chen_search.h"
#include "planners/chen_segments.h"

namespace hw::planners {
namespace {

using namespace hw::core;
using namespace hw::planners::chen;

// Everything kept, freed at its last use rather than at the program's release; the baseline itself
// where that is not lower.
Schedule keepEverything(const TrainingGraph& graph, const RebuildInfo& info,
                        const ForwardPass& forward) {
    Schedule kept =
        dropSchedule(graph, info, forward, std::vector<bool>(graph.storages.size(), true));
    Schedule baseline = baselineSchedule(graph);
    const Evaluation judged = evaluate(graph, kept);
    return judged.valid && judged.peak <= evaluate(graph, baseline).peak ? kept : baseline;
}

// The plan of these cuts, or everything kept where its peak is above that.
Proposal whateverTheBudget(const TrainingGraph& graph, const RebuildInfo& info,
                           const ForwardPass& forward, const std::vector<Cut>& cuts) {
    Schedule kept = keepEverything(graph, info, forward);
    Schedule cut = segmentSchedule(graph, info, forward, cuts);
    const Evaluation judged = evaluate(graph, cut);
    const bool lower = judged.valid && judged.peak < evaluate(graph, kept).peak;
    Proposal proposal;
    proposal.status = PlanStatus::Ok;
    proposal.schedule = lower ? std::move(cut) : std::move(kept);
    return proposal;
}

// Values of a bound on bytes, evenly spaced in the logarithm, highest first.
std::vector<std::int64_t> logarithmicGrid(std::int64_t low, std::int64_t high, int count) {
    std::vector<std::int64_t> grid;
    const double ratio =
        static_cast<double>(high) / static_cast<double>(std::max<std::int64_t>(low, 1));
    for (int i = 0; i < count; ++i)
        grid.push_back(std::llround(static_cast<double>(high) *
                                    std::pow(ratio, -static_cast<double>(i) / (count - 1))));
    return grid;
}

}  // namespace

Proposal ChenSqrt::plan(const TrainingGraph& graph, const PlanRequest&,
                        const Progress& progress) const {
    if (progress.cancelled()) return cancelledProposal();
    const RebuildInfo info = rebuildInfo(graph);
    const ForwardPass forward = forwardPass(graph, info);
    const int parts =
        std::max(1, static_cast<int>(std::lround(std::sqrt(forward.effectiveLength))));
    return whateverTheBudget(graph, info, forward, equalCuts(forward, parts));
}

Proposal ChenRecursive::plan(const TrainingGraph& graph, const PlanRequest&,
                             const Progress& progress) const {
    if (progress.cancelled()) return cancelledProposal();
    const RebuildInfo info = rebuildInfo(graph);
    const ForwardPass forward = forwardPass(graph, info);
    return whateverTheBudget(graph, info, forward, splitFurther(forward, {}, 0));
}

namespace {

using Cuts = std::vector<Cut>;

// The search of chen-greedy. `work` bounds the candidates by the ops that they replay.
class GreedySearch {
public:
    GreedySearch(const TrainingGraph& graph, const RebuildInfo& info, const ForwardPass& forward,
                 Search& search, std::int64_t work)
        : graph_(graph),
          info_(info),
          forward_(forward),
          search_(search),
          left_(work / std::max<std::int64_t>(1, std::ssize(graph.ops))) {}

    /// Appendix A: Algorithm 3 for one bound; the cuts that keep the budget are remembered.
    void segments(std::int64_t bound) {
        for (Cuts cuts : {greedyCuts(forward_, bound), boundedCuts(forward_, bound)})
            attempt({std::move(cuts), true});
    }
    /// Segments of segments, for when no single level keeps the budget.
    void furtherLevels(std::int64_t bound, const std::vector<std::int64_t>& inner) {
        for (const std::int64_t limit : inner) {
            if (limit > bound || left_ <= 0) continue;
            for (const Cuts& cuts : {greedyCuts(forward_, bound), boundedCuts(forward_, bound)})
                for (const bool keepUnsaved : {true, false})
                    attempt({splitFurther(forward_, cuts, limit), keepUnsaved});
        }
    }
    /// The fewest of the first cuts that still keep the budget, for every remembered list, the
    /// fastest first: behind the last cut nothing is dropped.
    void leaveTheTail() {
        std::vector<Candidate> lists = std::move(fitting_);
        std::stable_sort(lists.begin(), lists.end(),
                         [](const Candidate& a, const Candidate& b) { return a.time < b.time; });
        for (const Candidate& list : lists) {
            std::ptrdiff_t low = 0, high = std::ssize(list.cuts);
            while (high - low > 1 && left_ > 0) {
                const std::ptrdiff_t middle = (low + high) / 2;
                const bool fits =
                    attempt({{list.cuts.begin(), list.cuts.begin() + middle}, list.keepUnsaved});
                (fits ? high : low) = middle;
            }
        }
    }

private:
    struct Candidate {
        Cuts cuts;
        bool keepUnsaved = true;
        Nanoseconds time{};
    };

    bool attempt(Candidate candidate) {
        if (candidate.cuts.empty()) return false;
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
    const RebuildInfo& info_;
    const ForwardPass& forward_;
    Search& search_;
    std::int64_t left_;
    std::vector<Candidate> fitting_;
    std::map<std::pair<Cuts, bool>, bool> fits_;  // what has been tried
};

}  // namespace

Proposal ChenGreedy::plan(const TrainingGraph& graph, const PlanRequest& request,
                          const Progress& progress) const {
    constexpr int kBounds = 40;                // values of B
    constexpr int kInnerBounds = 8;            // values of b
    constexpr std::int64_t kWork = 2'000'000;  // ops replayed, about two seconds
    const RebuildInfo info = rebuildInfo(graph);
    const ForwardPass forward = forwardPass(graph, info);
    std::int64_t largest = 0;
    for (StorageIndex s = 0; s < static_cast<StorageIndex>(graph.storages.size()); ++s)
        if (forward.saved[s]) largest = std::max(largest, graph.storages[s].bytes.count());
    const std::int64_t total = forward.savedBytes(0, forward.end);
    const std::vector<std::int64_t> bounds = logarithmicGrid(largest, total, kBounds);

    Search search(graph, request.budget);
    search.consider(keepEverything(graph, info, forward));
    GreedySearch greedy(graph, info, forward, search, request.workLimit.value_or(kWork));
    for (int i = 0; i < kBounds && !search.free(); ++i) {
        if (progress.cancelled()) return cancelledProposal();
        progress.report(0.3 * i / kBounds, "searching the segment size");
        greedy.segments(bounds[i]);
    }
    for (int i = 0, single = search.found() ? kBounds : 0; i + single < kBounds; ++i) {
        if (progress.cancelled()) return cancelledProposal();
        progress.report(0.3 + 0.4 * i / kBounds, "splitting the segments");
        greedy.furtherLevels(bounds[i], logarithmicGrid(largest, total, kInnerBounds));
    }
    progress.report(0.7, "leaving the tail");
    if (search.found() && !search.free()) greedy.leaveTheTail();
    return search.proposal("its segments, whatever their size,");
}

}  // namespace hw::planners

// SPDX-License-Identifier: MIT
#include "planners/search/host_memory_search.h"

#include <algorithm>
#include <map>
#include <optional>

#include "core/memory/evaluate.h"
#include "planners/offload/capuchin.h"
#include "planners/offload/link_bound.h"
#include "planners/offload/offload_schedule.h"
#include "planners/program/linear_program.h"
#include "planners/search/search_request.h"
#include "planners/search/shown_gap.h"

namespace hw::planners {
namespace {

using namespace hw::core;

constexpr double kAloneShare = 0.5;    // of the time: for recomputation alone
constexpr int kLevels = 6;             // budgets in between that are tried, at most
constexpr double kLeastSeconds = 0.2;  // for one of them

class HostMemorySearch {
public:
    HostMemorySearch(const TrainingGraph& graph, const PlanRequest& request,
                     const Progress& progress,
                     const std::function<Proposal(const PlanRequest&)>& recompute)
        : graph_(graph),
          request_(request),
          progress_(progress),
          recompute_(recompute),
          limit_(timeOf(request).seconds) {
        bound_ = haveSolver() && !firstPlanOnly(request)
                     ? std::optional(boundWithLink(graph, request.budget, *request.hostMemory))
                     : std::nullopt;
    }

    Proposal run() {
        const Schedule baseline = baselineSchedule(graph_);
        const Bytes all = evaluate(graph_, baseline).peak;
        offload(baseline, all);
        const Proposal swapped = Capuchin().plan(graph_, request_, progress_);
        if (swapped.status == PlanStatus::Ok) offload(swapped.schedule, all);
        if (request_.warmStart) offload(request_.warmStart, request_.budget);
        if (firstPlanOnly(request_) && best_) return conclude();
        if (!proven()) offload(planAt(request_.budget, kAloneShare), request_.budget);
        // Budgets as shares of the way from the wanted one to the baseline's peak; then in the
        // middle of the best one and its neighbours.
        const auto at = [&](double share) {
            return request_.budget +
                   Bytes(static_cast<std::int64_t>(
                       share * static_cast<double>((all - request_.budget).count())));
        };
        tried_ = {{0.0, timeAt(request_.budget)}, {1.0, timeAt(all)}};
        for (int level = 0; level < kLevels && !stopped() && !proven(); ++level) {
            const double share = level < 2 ? (level + 1) / 3.0 : nextShare();
            const double part = (1 - kAloneShare) / kLevels;
            offload(planAt(at(share), part), at(share));
            tried_[share] = timeAt(at(share));
        }
        return conclude();
    }

private:
    bool stopped() const {
        return progress_.cancelled() || (isTimed(request_) && time_.secondsLeft() < kLeastSeconds);
    }
    bool proven() const {
        return best_ && bound_ && noGapShown(bestTime_, *bound_, graph_.totalTime());
    }

    std::optional<Schedule> planAt(Bytes budget, double share) {
        PlanRequest part = request_;
        part.hostMemory.reset();
        if (part.warmStart && evaluate(graph_, *part.warmStart).offloadedBytes > Bytes(0))
            part.warmStart.reset();
        part.budget = budget;
        if (isTimed(request_)) part.timeLimitSeconds = std::max(kLeastSeconds, limit_ * share);
        if (request_.workLimit)
            part.workLimit = std::max<std::int64_t>(
                1, static_cast<std::int64_t>(static_cast<double>(*request_.workLimit) * share));
        Proposal proposal = recompute_(part);
        if (budget == request_.budget) reason_ = proposal.reason;
        if (proposal.status != PlanStatus::Ok) return std::nullopt;
        return std::move(proposal.schedule);
    }

    /// The schedule, brought within the budget, if that is possible.
    void offload(const std::optional<Schedule>& schedule, Bytes level) {
        if (!schedule) return;
        auto within = offloadWithin(graph_, *schedule, {request_.budget, *request_.hostMemory});
        if (!within) return;
        const Nanoseconds time = evaluate(graph_, *within).time;
        const auto known = times_.emplace(level, time).first;
        known->second = std::min(known->second, time);
        if (!best_ || time < bestTime_) best_ = std::move(within), bestTime_ = time;
    }
    std::optional<Nanoseconds> timeAt(Bytes level) const {
        const auto at = times_.find(level);
        return at == times_.end() ? std::nullopt : std::optional(at->second);
    }

    /// The middle of the wider gap beside the best share; one without a plan counts as the worst.
    double nextShare() const {
        auto best = tried_.begin();
        for (auto at = tried_.begin(); at != tried_.end(); ++at)
            if (at->second && (!best->second || *at->second < *best->second)) best = at;
        const double here = best->first;
        const double below = best == tried_.begin() ? here : std::prev(best)->first;
        const double above = std::next(best) == tried_.end() ? here : std::next(best)->first;
        return here - below > above - here ? (here + below) / 2 : (here + above) / 2;
    }

    Proposal conclude() {
        if (progress_.cancelled()) return refusal(PlanStatus::Cancelled, "cancelled");
        if (!best_)
            return refusal(
                PlanStatus::Infeasible,
                "offloading what is idle is not enough, with or without recomputation (" + reason_ +
                    ")");
        Proposal proposal;
        proposal.status = PlanStatus::Ok;
        proposal.schedule = std::move(*best_);
        proposal.lowerBound = bound_;
        return proposal;
    }

    const TrainingGraph& graph_;
    const PlanRequest& request_;
    const Progress& progress_;
    const std::function<Proposal(const PlanRequest&)>& recompute_;
    double limit_;
    WorkBudget time_{.seconds = limit_};
    std::optional<Nanoseconds> bound_;
    std::optional<Schedule> best_;
    Nanoseconds bestTime_;
    std::map<Bytes, Nanoseconds> times_;                  // by level
    std::map<double, std::optional<Nanoseconds>> tried_;  // by share
    std::string reason_;
};

}  // namespace

Proposal searchWithHostMemory(const TrainingGraph& graph, const PlanRequest& request,
                              const Progress& progress,
                              const std::function<Proposal(const PlanRequest&)>& recompute) {
    return HostMemorySearch(graph, request, progress, recompute).run();
}

}  // namespace hw::planners

// SPDX-License-Identifier: MIT
#include "planners/rank_plans.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/memory/evaluate.h"
#include "planners/plan_with.h"

namespace hw::planners {
namespace {

using namespace hw::core;

std::optional<RankOutcome> takePlan(const LoadedRank& rank, Bytes budget, const Outcome& of,
                                    int other) {
    if (!of.plan) return std::nullopt;
    const Evaluation judged = evaluate(rank.graph, of.plan->schedule);
    if (!judged.valid || judged.peak > budget) return std::nullopt;
    Outcome outcome = of;
    outcome.budget = budget;
    outcome.peak = judged.peak, outcome.time = judged.time;
    outcome.overhead = ratio(judged.time, rank.baseline.time);
    outcome.lowerBound.reset(), outcome.gap.reset();
    outcome.solveSeconds = outcome.solveCpuSeconds = 0;
    Plan& plan = *outcome.plan;
    plan.budget = budget;
    plan.predictedPeak = judged.peak, plan.predictedTime = judged.time;
    plan.overhead = outcome.overhead;
    plan.lowerBound.reset();
    return RankOutcome{std::move(outcome), other};
}

/// Ranks of one graph at one point.
struct Group {
    std::size_t point = 0;
    std::vector<std::size_t> planned, open;  // ranks
};

class RankPlans {
public:
    RankPlans(const std::vector<LoadedRank>& ranks, const std::vector<RankPoint>& points)
        : ranks_(ranks),
          points_(points),
          outcomes_(points.size(), std::vector<RankOutcome>(ranks.size())) {
        std::map<std::string, std::vector<std::size_t>> alike;
        for (std::size_t r = 0; r < ranks.size(); ++r)
            alike[ranks[r].graph.fingerprint()].push_back(r);
        for (std::size_t p = 0; p < points.size(); ++p)
            for (const auto& [fingerprint, list] : alike) groups_.push_back({p, {}, list});
    }

    Result<std::vector<std::vector<RankOutcome>>> run(unsigned jobs, const Progress& progress) {
        while (true) {
            std::vector<SweepPoint> sweep;
            std::vector<RankOutcome*> into;
            for (Group& group : groups_) {
                takePlans(group);
                if (group.open.empty()) continue;
                const std::size_t rank = group.open.front();
                group.open.erase(group.open.begin());
                group.planned.push_back(rank);
                const RankPoint& point = points_[group.point];
                sweep.push_back({&ranks_[rank].graph, point.planner, point.requests[rank]});
                into.push_back(&outcomes_[group.point][rank]);
            }
            if (sweep.empty()) return std::move(outcomes_);
            auto found = planSweep(sweep, {true, jobs}, progress);
            if (!found) return found.error();
            for (std::size_t i = 0; i < into.size(); ++i) into[i]->outcome = std::move((*found)[i]);
        }
    }

private:
    /// Those that can have the plan of one that is planned have it.
    void takePlans(Group& group) {
        std::erase_if(group.open, [&](std::size_t rank) {
            for (const std::size_t other : group.planned) {
                auto taken = takePlan(ranks_[rank], points_[group.point].requests[rank].budget,
                                      outcomes_[group.point][other].outcome, ranks_[other].rank);
                if (!taken) continue;
                outcomes_[group.point][rank] = std::move(*taken);
                return true;
            }
            return false;
        });
    }

    const std::vector<LoadedRank>& ranks_;
    const std::vector<RankPoint>& points_;
    std::vector<std::vector<RankOutcome>> outcomes_;
    std::vector<Group> groups_;
};

}  // namespace

Result<std::vector<std::vector<RankOutcome>>> planRanks(const std::vector<LoadedRank>& ranks,
                                                        const std::vector<RankPoint>& points,
                                                        unsigned jobs, const Progress& progress) {
    return RankPlans(ranks, points).run(jobs, progress);
}

Result<std::vector<Bytes>> spareWhileWaiting(const std::vector<LoadedRank>& ranks,
                                             const RankPoint& point,
                                             std::vector<RankOutcome>& outcomes,
                                             const Progress& progress) {
    constexpr int kProbes = 5;
    constexpr std::int64_t kTolerance = 1000;  // of the step's time
    const StepTime before = plannedTime(ranks, outcomes);
    const Nanoseconds limit = before.time + Nanoseconds(before.time.count() / kTolerance);
    std::vector<Bytes> spared(ranks.size());
    for (std::size_t r = 0; r < ranks.size(); ++r) {
        if (r == before.decides) continue;
        RankOutcome& planned = outcomes[r];
        PlanRequest request = point.requests[r];
        Bytes fits = planned.outcome.peak, least = ranks[r].graph.floorBytes();
        const Bytes first = fits;
        for (int probe = 0; probe < kProbes && least < fits; ++probe) {
            request.budget = Bytes((least + fits).count() / 2);
            auto outcome = planWith(point.planner, ranks[r].graph, request, progress);
            if (!outcome) return outcome.error();
            if (outcome->status == PlanStatus::Ok) {
                std::swap(planned.outcome, *outcome);
                if (plannedTime(ranks, outcomes).time <= limit) {
                    fits = planned.outcome.peak;
                    planned.like.reset();
                    continue;
                }
                std::swap(planned.outcome, *outcome);
            }
            least = request.budget;
        }
        spared[r] = first - fits;
    }
    return spared;
}

StepTime plannedTime(const std::vector<LoadedRank>& ranks,
                     const std::vector<RankOutcome>& outcomes) {
    std::vector<RankStep> steps;
    for (std::size_t r = 0; r < ranks.size(); ++r)
        steps.push_back({ranks[r].rank, &ranks[r].graph, &outcomes[r].outcome.plan->schedule,
                         &ranks[r].exchanges});
    return simulateStep(steps);
}

}  // namespace hw::planners

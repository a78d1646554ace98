// SPDX-License-Identifier: MIT
#include "planners/smallest_budget.h"

#include <algorithm>
#include <chrono>

#include "planners/plan_with.h"
#include "planners/registry.h"

namespace hw::planners {

using namespace hw::core;

std::optional<Bytes> smallestBudget(std::string_view planner, const TrainingGraph& graph,
                                    PlanRequest request, const Progress& progress) {
    constexpr int kSteps = 16;
    constexpr double kSeconds = 10;  // where no limit is given
    const PlannerInfo* info = findPlanner(planner);
    const double seconds = request.timeLimitSeconds.value_or(kSeconds) / 2;
    const auto begin = std::chrono::steady_clock::now();
    const auto left = [&] {
        const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
        return seconds - passed.count();
    };
    if (request.workLimit)
        request.workLimit = std::max<std::int64_t>(1, *request.workLimit / kSteps);
    // Peak of a plan within the budget, when one is found with a part of the time that is left.
    const auto found = [&](Bytes budget, int parts) -> std::optional<Bytes> {
        request.budget = budget;
        if (!request.workLimit) request.timeLimitSeconds = left() / parts;
        const auto outcome = planWith(planner, graph, request, progress);
        if (!outcome || outcome->status != PlanStatus::Ok) return std::nullopt;
        return outcome->peak;
    };
    const bool oneForAll = info != nullptr && info->budgetFree;
    Bytes low = request.hostMemory ? graph.bottleneckBytes() : graph.floorBytes();
    const auto most = found(evaluate(graph, baselineSchedule(graph)).peak, kSteps);
    if (!most || oneForAll) return most;
    Bytes high = *most;
    // Planners are not monotonic in the budget: the answer is a budget that does, not the least
    // one.
    for (int i = 0; i < kSteps && high.count() - low.count() > high.count() / 500; ++i) {
        if (progress.cancelled() || (!request.workLimit && left() <= 0)) break;
        const Bytes middle((low.count() + high.count()) / 2);
        if (const auto peak = found(middle, std::max(2, kSteps / 2 - i)))
            high = *peak;
        else
            low = middle;
    }
    return high;
}

}  // namespace hw::planners

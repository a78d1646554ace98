// SPDX-License-Identifier: MIT
#include "planners/chen/chen.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "planners/chen/search.h"
#include "planners/chen/segments.h"
#include "planners/windows/plan_windows.h"

namespace hw::planners {
namespace {

using namespace hw::core;
using namespace hw::planners::chen;

// The plan of these cuts, or everything kept where its peak is above that.
Proposal whateverTheBudget(const TrainingGraph& graph, const RebuildInfo& info,
                           const ForwardPass& forward, const std::vector<Cut>& cuts) {
    KeptSchedule kept = keepEverything(graph, info, forward);
    Schedule cut = segmentSchedule(graph, info, forward, cuts);
    const Evaluation judged = evaluate(graph, cut);
    const bool lower = judged.valid && judged.peak < kept.peak;
    Proposal proposal;
    proposal.status = PlanStatus::Ok;
    proposal.schedule = lower ? std::move(cut) : std::move(kept.schedule);
    return proposal;
}

}  // namespace

PlannerInfo ChenSqrt::info() {
    return {.name = "chen-sqrt",
            .description = "Chen et al. 2016, section 4.3: sqrt(n) segments, whatever the budget",
            .family = PlannerFamily::Chen,
            .colour = 2,
            .quick = true,
            .budgetFree = true,
            .make = [] { return std::make_unique<ChenSqrt>(); }};
}

PlannerInfo ChenRecursive::info() {
    return {.name = "chen-recursive",
            .description = "Chen et al. 2016, section 4.4: segments of segments, least memory",
            .family = PlannerFamily::Chen,
            .colour = 5,
            .quick = true,
            .budgetFree = true,
            .make = [] { return std::make_unique<ChenRecursive>(); }};
}

Proposal ChenSqrt::plan(const TrainingGraph& graph, const PlanRequest& request,
                        const Progress& progress) const {
    if (progress.cancelled()) return cancelledProposal();
    if (auto passes = planPasses(*this, graph, request, progress)) return std::move(*passes);
    const RebuildInfo info = rebuildInfo(graph);
    const ForwardPass forward = forwardPass(graph, info);
    const int parts =
        std::max(1, static_cast<int>(std::lround(std::sqrt(forward.effectiveLength))));
    return whateverTheBudget(graph, info, forward, equalCuts(forward, parts));
}

Proposal ChenRecursive::plan(const TrainingGraph& graph, const PlanRequest& request,
                             const Progress& progress) const {
    if (progress.cancelled()) return cancelledProposal();
    if (auto passes = planPasses(*this, graph, request, progress)) return std::move(*passes);
    const RebuildInfo info = rebuildInfo(graph);
    const ForwardPass forward = forwardPass(graph, info);
    return whateverTheBudget(graph, info, forward, splitFurther(forward, {}, 0));
}

}  // namespace hw::planners

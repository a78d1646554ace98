// SPDX-License-Identifier: MIT
#include "planners/offload/offload_only.h"

#include "core/memory/evaluate.h"
#include "planners/offload/offload_schedule.h"

namespace hw::planners {

using namespace hw::core;

PlannerInfo OffloadOnly::info() {
    return {.name = "offload-only",
            .description = "copies to host memory alone: what is idle longest leaves",
            .colour = 4,
            .offloads = true,
            .needsHostMemory = true,
            .make = [] { return std::make_unique<OffloadOnly>(); }};
}

Proposal OffloadOnly::plan(const TrainingGraph& graph, const PlanRequest& request,
                           const Progress&) const {
    Proposal proposal;
    if (!request.hostMemory) {
        proposal.reason = "it may use no host memory";
        return proposal;
    }
    auto schedule =
        offloadWithin(graph, baselineSchedule(graph), {request.budget, *request.hostMemory});
    if (!schedule) {
        proposal.reason =
            "what is in use at one moment, with what no copy can stand in for, "
            "exceeds the budget";
        return proposal;
    }
    proposal.status = PlanStatus::Ok;
    proposal.schedule = std::move(*schedule);
    proposal.lowerBound = graph.totalTime();
    return proposal;
}

}  // namespace hw::planners

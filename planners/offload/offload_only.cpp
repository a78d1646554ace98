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
    return proposeOffloaded(graph, baselineSchedule(graph), request);
}

}  // namespace hw::planners

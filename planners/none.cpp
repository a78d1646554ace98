// SPDX-License-Identifier: MIT
#include "planners/none.h"

namespace hw::planners {

PlannerInfo None::info() {
    return {.name = core::kBaselinePlanner,
            .description = "the baseline: captured order, nothing recomputed",
            .colour = 0,
            .baseline = true,
            .quick = true,
            .budgetFree = true,
            .preselected = true,
            .make = [] { return std::make_unique<None>(); }};
}

Proposal None::plan(const core::TrainingGraph& graph, const PlanRequest&, const Progress&) const {
    Proposal proposal;
    proposal.status = PlanStatus::Ok;
    proposal.schedule = core::baselineSchedule(graph);
    proposal.lowerBound = graph.totalTime();  // every op runs at least once
    return proposal;
}

}  // namespace hw::planners

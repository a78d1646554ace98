// SPDX-License-Identifier: MIT
// Brings a schedule within a budget by offloading alone.
#pragma once

#include <optional>

#include "core/graph/training_graph.h"
#include "core/plan/plan.h"
#include "planners/planner.h"

namespace hw::planners {

struct OffloadBudgets {
    core::Bytes device;  // binds the peak
    core::Bytes host;    // binds the copies in host memory
};

/// The valid `schedule` with copies to and from host memory, such that the judge's peak keeps to
/// the budgets: what is idle longest at the highest actions leaves, as soon as its copy is through
/// where memory allows, and comes back as late as the link allows. None where nothing that is idle
/// is enough. Which of two idle storages leaves is the rule of Belady (1966), with the time of
/// their copies taken off, as in Capuchin (Peng et al., ASPLOS 2020, section 4.3).
std::optional<core::Schedule> offloadWithin(const core::TrainingGraph& graph,
                                            const core::Schedule& schedule,
                                            const OffloadBudgets& budgets);

/// The same as the answer of a planner that needs PlanRequest::hostMemory.
Proposal proposeOffloaded(const core::TrainingGraph& graph, const core::Schedule& schedule,
                          const PlanRequest& request);

}  // namespace hw::planners

// SPDX-License-Identifier: MIT
#pragma once

#include <functional>

#include "planners/planner.h"

namespace hw::planners {

/// Recomputation and offloading together, within PlanRequest::hostMemory: recomputation brings the
/// step down to a budget between the wanted one and the baseline's peak, offloading the rest of the
/// way (offload_schedule.h), and the best of several such budgets is the plan. Both ends and
/// Capuchin's plan are among them. `recompute` plans without host memory. The lower
/// bound is that of boundWithLink().
Proposal searchWithHostMemory(const core::TrainingGraph& graph, const PlanRequest& request,
                              const Progress& progress,
                              const std::function<Proposal(const PlanRequest&)>& recompute);

}  // namespace hw::planners

// SPDX-License-Identifier: MIT
// `highwater` on one pass that is too large for a matrix of what is kept when.
#pragma once

#include "planners/planner.h"

namespace hw::planners {

/// The best of what takes time linear in ops: plans of segments (segment_fill.h), and those of the
/// planners that do. The bound is a knapsack (program/knapsack_bound.h). Within the request's time;
/// under a work limit alone all candidates are made, one after the other.
Proposal searchLarge(const core::TrainingGraph& graph, const PlanRequest& request,
                     const Progress& progress);

}  // namespace hw::planners

// SPDX-License-Identifier: MIT
// `highwater` on one pass, forward and backward.
#pragma once

#include "planners/planner.h"

namespace hw::planners {

/// A matrix of storages by ops (core/memory/stage_judge.h) would be too large to search with.
bool isLarge(const core::TrainingGraph& graph);

/// By a search over matrices (whole_search.h) where a matrix is small enough, otherwise by what is
/// linear in ops (large_search.h). Infeasible below the graph's floor.
Proposal searchPass(const core::TrainingGraph& graph, const PlanRequest& request,
                    const Progress& progress);

}  // namespace hw::planners

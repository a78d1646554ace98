// SPDX-License-Identifier: MIT
// The search of the planner `highwater` on large steps of several passes.
#pragma once

#include "planners/planner.h"
#include "planners/windows/step_windows.h"

namespace hw::planners {

/// Searches each class of windows as a whole (whole_search.h), which takes no longer for 32 equal
/// passes than for one, and joins the schedules; beside it one relaxation a pass bounds the whole
/// step (boundByParts). Steps of not too many ops are then searched as a whole from there on, and
/// so are those of which a window by itself has no plan.
Proposal searchWindows(const core::TrainingGraph& graph, const StepWindows& windows,
                       const PlanRequest& request, const Progress& progress);

}  // namespace hw::planners

// SPDX-License-Identifier: MIT
// Planners of one pass, forward and backward, on steps of several passes.
#pragma once

#include <functional>
#include <optional>

#include "planners/planner.h"
#include "planners/windows/step_windows.h"

namespace hw::planners {

/// How a planner plans one window, within the budget that is left to it.
using WindowPlanner =
    std::function<Proposal(const WindowClass&, const PlanRequest&, const Progress&)>;

/// Plans every class of windows and joins the schedules. The request's time and work limits are
/// divided among the classes by what is in them and how often they come. A class without a plan
/// ends it, with the reason.
Proposal planWindows(const StepWindows& windows, const PlanRequest& request,
                     const Progress& progress, const WindowPlanner& planner);

/// The same for a planner of one pass, which plans each pass of a large step by itself. None when
/// the step is small or one pass.
std::optional<Proposal> planPasses(const Planner& planner, const core::TrainingGraph& graph,
                                   const PlanRequest& request, const Progress& progress);

}  // namespace hw::planners

// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string_view>

#include "planners/planner.h"

namespace hw::planners {

/// Smallest budget at which `planner` finds a plan, searched by bisection between the graph's floor
/// and its baseline peak within half of the request's time limit; none when even the baseline peak
/// has no plan.
std::optional<core::Bytes> smallestBudget(std::string_view planner,
                                          const core::TrainingGraph& graph, PlanRequest request,
                                          const Progress& progress = {});

}  // namespace hw::planners

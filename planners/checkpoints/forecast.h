// SPDX-License-Identifier: MIT
// What PyTorch makes of a step whose modules run in checkpoints.
#pragma once

#include <optional>
#include <vector>

#include "core/memory/held_by_plan.h"
#include "core/memory/rebuild.h"
#include "core/plan/checkpoints.h"

namespace hw::planners {

/// All that a region does not save is dropped when its forward ends, and rebuilt at once when
/// backward first needs any of it; its inputs stay. Nothing when the judge refuses that.
std::optional<core::CheckpointForecast> forecast(
    const core::TrainingGraph& graph, const core::RebuildInfo& info, const core::HeldByPlan& held,
    const std::vector<core::CheckpointRegion>& regions);

}  // namespace hw::planners

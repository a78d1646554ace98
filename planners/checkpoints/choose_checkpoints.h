// SPDX-License-Identifier: MIT
// Which layers to wrap in a selective checkpoint so that PyTorch does about what a plan does.
#pragma once

#include <optional>

#include "core/plan/checkpoints.h"
#include "core/plan/plan.h"

namespace hw::planners {

/// The regions with the least time among those whose peak is within the plan's, or else with the
/// least peak, found by local search from cuts through the tree of layers: leaving a region out,
/// splitting it, joining it with its siblings, saving all or nothing of what the plan holds.
/// Nothing when the layers cannot give back any memory. At most 400 forecasts.
std::optional<core::CheckpointChoice> chooseCheckpoints(const core::TrainingGraph& graph,
                                                        const core::Schedule& schedule);

}  // namespace hw::planners

// SPDX-License-Identifier: MIT
// Which layers to wrap in a selective checkpoint so that PyTorch does about what a plan does.
#pragma once

#include <optional>
#include <vector>

#include "core/base/units.h"
#include "core/graph/training_graph.h"
#include "core/plan/plan.h"

namespace hw::core {

/// What a plan holds between forward and backward. By op: `saves`, forward ops whose results the
/// plan holds; `recomputed`, ops that run again. By storage: `retained`, held by the plan;
/// `wanted`, made in forward and read in backward by the captured order.
struct HeldByPlan {
    std::vector<bool> saves, recomputed, retained, wanted;
};
HeldByPlan heldByPlan(const TrainingGraph& graph, const Schedule& schedule);

/// A module whose forward runs in torch.utils.checkpoint. `keepsPlan`: the results that the plan
/// holds are saved; otherwise nothing inside is.
struct CheckpointRegion {
    LayerIndex layer = kNone;
    bool keepsPlan = true;
};

/// What PyTorch makes of some regions: all that a region does not save is dropped when its forward
/// ends, and rebuilt at once when backward first needs any of it; its inputs stay. Nothing when the
/// judge refuses that.
struct CheckpointForecast {
    Bytes peak;
    Nanoseconds time;
};
std::optional<CheckpointForecast> forecast(const TrainingGraph& graph, const HeldByPlan& held,
                                           const std::vector<CheckpointRegion>& regions);

struct CheckpointChoice {
    std::vector<CheckpointRegion> regions;  // in the order of graph.layers; none within another
    CheckpointForecast forecast;
};

/// The regions with the least time among those whose peak is within the plan's, or else with the
/// least peak, found by local search from cuts through the tree of layers: leaving a region out,
/// splitting it, joining it with its siblings, saving all or nothing of what the plan holds.
/// Nothing when the layers cannot give back any memory.
std::optional<CheckpointChoice> chooseCheckpoints(const TrainingGraph& graph,
                                                  const Schedule& schedule);

bool isWithin(const TrainingGraph& graph, LayerIndex layer, LayerIndex ancestor);

}  // namespace hw::core

// SPDX-License-Identifier: MIT
// A plan in the terms of PyTorch: modules that run in a checkpoint.
#pragma once

#include <vector>

#include "core/base/units.h"
#include "core/graph/training_graph.h"

namespace hw::core {

/// A module whose forward runs in torch.utils.checkpoint. `keepsPlan`: the results that the plan
/// holds are saved; otherwise nothing inside is.
struct CheckpointRegion {
    LayerIndex layer = kNone;
    bool keepsPlan = true;
};

/// What the judge says of a step with checkpoints.
struct CheckpointForecast {
    Bytes peak;
    Nanoseconds time;
};

struct CheckpointChoice {
    std::vector<CheckpointRegion> regions;  // in the order of graph.layers; none within another
    CheckpointForecast forecast;
};

/// Whether `layer` is `ancestor` or lies below it.
bool isWithin(const TrainingGraph& graph, LayerIndex layer, LayerIndex ancestor);

}  // namespace hw::core

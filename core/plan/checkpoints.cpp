// SPDX-License-Identifier: MIT
#include "core/plan/checkpoints.h"

namespace hw::core {

bool isWithin(const TrainingGraph& graph, LayerIndex layer, LayerIndex ancestor) {
    for (; layer != kNone; layer = graph.layers[layer].parent)
        if (layer == ancestor) return true;
    return false;
}

}  // namespace hw::core

// SPDX-License-Identifier: MIT
// A captured step as Mimose sees it: layers in forward order, each with what it saves.
#pragma once

#include <string>
#include <vector>

#include "core/graph/training_graph.h"
#include "planners/schedule/forward_pass.h"

namespace hw::planners {

/// A layer that can be checkpointed as a whole: what it saves for the backward pass is dropped and
/// recomputed from its input.
struct MimoseLayer {
    std::string path;        // module path, or "segment 3" in a graph without modules
    core::Bytes bytes;       // saved inside it; its input and output stay
    core::Nanoseconds time;  // of the forward ops that a recomputation runs again
    std::vector<core::StorageIndex> storages;  // made and used within its forward pass only
};

/// The layers of a step in the order of their first forward op. A layer is the outermost module,
/// below the root, that runs ops of its own: an encoder block rather than its linear layers, while
/// containers that only call others dissolve into them. Modules that save nothing droppable are
/// left out, and so are ops outside any module.
/// A graph without modules (the simulator's logs have none) is cut into consecutive segments of
/// the forward pass, about as many as the square root of its saved storages and of equal saved
/// bytes, which stand in for layers.
std::vector<MimoseLayer> mimoseLayers(const core::TrainingGraph& graph,
                                      const core::RebuildInfo& info, const ForwardPass& forward);

/// What the forward pass reads without having made it itself, parameters and what else lives on
/// apart: the batch, and buffers.
std::vector<core::StorageIndex> inputStorages(const core::TrainingGraph& graph);

/// Bytes that the forward pass reads without having made them itself: the batch, not parameters or
/// what else lives on. Proportional to the size of the input (the product of its dimensions) when
/// the element size does not change.
core::Bytes inputBytes(const core::TrainingGraph& graph);

}  // namespace hw::planners

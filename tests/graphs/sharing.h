// SPDX-License-Identifier: MIT
#pragma once

#include <functional>

#include "core/graph/training_graph.h"

namespace hw::bench {

/// Memory of what a step computes, constants left out, by Chen et al. 2016, section 3.
struct SharedMemory {
    core::Bytes separate;  // every result has memory of its own
    core::Bytes inPlace;   // an op's result takes the memory of an input that nobody else needs
    core::Bytes sharing;   // and memory is used again after its last use
};

/// `mayOverwrite`: the op can write its first result over an input of the same size. The input must
/// be a storage that the step computes, that no later op uses and that does not stay at the end.
/// Sharing packs the remaining lifetimes with packBlocks(), where the paper colours a graph of
/// operations; alignment 1.
SharedMemory sharedMemory(const core::TrainingGraph& graph,
                          const std::function<bool(const core::Op&)>& mayOverwrite);

/// Element-wise ops of the generated networks: batch norm, activations, sums and products, and
/// their gradients.
bool elementWise(const core::Op& op);

}  // namespace hw::bench

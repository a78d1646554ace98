// SPDX-License-Identifier: MIT
// What of one graph is what of another: records of the same program at two sizes, op by op.
#pragma once

#include <vector>

#include "core/base/result.h"
#include "core/graph/training_graph.h"

namespace hw::core {

/// A step that was recorded, and how it is called in messages.
struct NamedGraph {
    const TrainingGraph& graph;
    const std::string& name;
};

/// By index of the first graph: the index in the second one.
struct Alignment {
    std::vector<TensorIndex> tensors;
    std::vector<StorageIndex> storages;
};

/// Ops correspond in their order: the same names, phases, inputs, outputs and writes, of storages
/// that come and go at the same ops. What no op touches corresponds in the order in which it comes.
/// Parameters and optimizer states have the same bytes in both.
/// Errors: BadInput, with the first op that differs and both names.
Result<Alignment> align(const NamedGraph& first, const NamedGraph& second);

}  // namespace hw::core

// SPDX-License-Identifier: MIT
// When the storages of a step come into being, and until when anything needs them.
#pragma once

#include <vector>

#include "core/graph/training_graph.h"
#include "core/memory/rebuild.h"

namespace hw::core {

/// By storage, in ops of the captured order.
struct Lifetimes {
    std::vector<OpIndex> born;   // the op that makes it; of a constant the last one before it
    std::vector<OpIndex> until;  // last that reads or writes it, at least `born`; the number of ops
                                 // when it is alive at the end
    std::vector<OpIndex> released;  // last op before the program lets go of it; kNone: never
};

Lifetimes lifetimes(const TrainingGraph& graph, const RebuildInfo& info);

/// Memory when every storage goes after the last op that needs it.
struct MemoryByOp {
    std::vector<Bytes> during;  // highest while the op runs
    std::vector<Bytes> after;
};

MemoryByOp memoryByOp(const TrainingGraph& graph, const Lifetimes& lives);

}  // namespace hw::core

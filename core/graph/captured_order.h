// SPDX-License-Identifier: MIT
// What every schedule keeps of the captured order, whatever it recomputes and frees.
#pragma once

#include <vector>

#include "core/graph/training_graph.h"

namespace hw::core {

/// Where a constant comes into being: right after the first computation of the last op logged
/// before it that keeps its place.
struct ConstantStart {
    StorageIndex storage = kNone;
    OpIndex fixedOpsBefore = 0;
    OpIndex after = kNone;  // the last of those; kNone: there from the start
};

struct CapturedOrder {
    std::vector<OpIndex> fixedOps;  // first computed in this order: all but those that only view
    std::vector<ConstantStart> constants;  // in the order in which they come into being
};

CapturedOrder capturedOrder(const TrainingGraph& graph);

}  // namespace hw::core

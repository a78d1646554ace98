// SPDX-License-Identifier: MIT
// What verification sees of a run, free of libtorch.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "core/graph/training_graph.h"
#include "executor/replay/checksum.h"
#include "executor/replay/span.h"

namespace hw::executor {

using StorageBytes = std::vector<std::pair<core::StorageIndex, Span<const std::byte>>>;

/// What an observer sees of an op that has just run, before anything is dropped.
struct OpResults {
    std::size_t action = 0;
    core::OpIndex op = core::kNone;
    bool first = true;                 // not a recomputation
    std::vector<TensorBytes> outputs;  // in result order, dropped ones too
    StorageBytes inputs, written;      // whole storages
};

class Observer {
public:
    virtual ~Observer() = default;
    virtual void beforeOp(core::OpIndex, const StorageBytes& /*inputs*/) {}
    virtual void afterOp(const OpResults& results) = 0;
};

/// What is there when the step ends.
struct FinalState {
    std::vector<TensorBytes> tensors;  // graph.finalTensors
    StorageBytes storages;             // each once
    std::vector<std::vector<std::byte>> generators;
};

}  // namespace hw::executor

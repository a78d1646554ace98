// SPDX-License-Identifier: MIT
// What a step of a program in C++ does, as a recording would have it: ops where the live runtime
// sees them, and the storages that they read, make and write.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <map>
#include <unordered_map>
#include <vector>

#include "core/graph/training_graph.h"
#include "core/session/rows.h"

namespace hw::test {

class OpTrace {
public:
    /// One op; runs it.
    void op(const c10::OperatorHandle& handle, c10::DispatchKeySet below, torch::jit::Stack* stack);
    /// The step has ended.
    core::TrainingGraph finish();
    const std::vector<core::TensorRow>& tensors() const { return rows_; }

private:
    struct Known {
        core::StorageIndex index = core::kNone;
        c10::weak_intrusive_ptr<c10::StorageImpl> weak;  // keeps the address from being used again
        std::int32_t version = 0;
        bool gone = false;
    };
    Known& known(const at::Tensor& tensor, core::OpIndex creator);
    core::TensorIndex tensor(const at::Tensor& tensor);
    void noteReleases();

    core::TrainingGraph graph_;
    std::vector<core::TensorRow> rows_;
    std::unordered_map<c10::StorageImpl*, Known> storages_;
    std::map<std::pair<core::StorageIndex, std::string>, core::TensorIndex> tensors_;
};

}  // namespace hw::test

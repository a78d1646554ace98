// SPDX-License-Identifier: MIT
// Which tensors are there: while a storage is resident, those that came with it and those that ops
// have made since it came into being.
#pragma once

#include <cstdint>
#include <vector>

#include "core/graph/training_graph.h"

namespace hw::core {

/// Takes the same time for a storage whatever the number of its tensors.
class DefinedTensors {
public:
    DefinedTensors() = default;
    /// None is there yet. `graph` must outlive it.
    explicit DefinedTensors(const TrainingGraph& graph)
        : graph_(&graph), madeIn_(graph.tensors.size(), 0), life_(graph.storages.size(), 2) {}

    bool has(TensorIndex tensor) const {
        const Tensor& of = graph_->tensors[tensor];
        const std::uint32_t life = life_[of.storage];
        return of.creator == kNone ? (life & 1) != 0 : madeIn_[tensor] == (life | 1);
    }
    /// The storage comes into being, with the tensors that no op makes.
    void begin(StorageIndex storage) { life_[storage] |= 1; }
    /// An op has made it, or written it.
    void add(TensorIndex tensor) {
        const Tensor& of = graph_->tensors[tensor];
        if (of.creator == kNone) begin(of.storage);
        madeIn_[tensor] = life_[of.storage] | 1;
    }
    /// All of the storage's tensors are gone.
    void forget(StorageIndex storage) { life_[storage] = (life_[storage] | 1) + 1; }

private:
    const TrainingGraph* graph_ = nullptr;
    std::vector<std::uint32_t> madeIn_;  // by tensor: the storage's life at that time
    std::vector<std::uint32_t> life_;    // by storage, a new one each time; odd: it has begun
};

}  // namespace hw::core

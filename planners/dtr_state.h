// SPDX-License-Identifier: MIT
// What DTR's runtime and its heuristics share: the state of every storage, the graph that the
// program has built so far, the clock and the counters.
#pragma once

#include <cstdint>
#include <vector>

#include "core/graph/training_graph.h"
#include "planners/storage_set.h"

namespace hw::planners {

struct DtrStorage {
    /// Storages joined to this one by ops, itself and constants included; and how many tensors they
    /// are, each as often as an op joins it: the simulator counts accesses by them.
    struct Links {
        StorageSet storages;
        std::int64_t tensors = 0;
    };

    Links children, parents;
    std::int64_t compute = 0;     // ns of the ops that made the storage and its tensors so far
    std::int64_t size = 0;        // bytes
    std::int64_t lastAccess = 0;  // clock
    std::int32_t locks = 0;
    std::int32_t version = 0;
    bool material = false;
    bool everMaterial = false;
    bool pinned = false;
    bool dead = false;  // released by the program
    bool gone = false;  // banished, or a constant freed for good: it never comes back
};

struct DtrState {
    /// An op makes or writes a tensor of `output` from one of `input`.
    void link(core::StorageIndex input, core::StorageIndex output) {
        auto &children = storages[input].children, &parents = storages[output].parents;
        children.storages.insert(output), ++children.tensors;
        parents.storages.insert(input), ++parents.tensors;
    }

    std::vector<DtrStorage> storages;
    std::int64_t clock = 1;  // ns
    std::int64_t evals = 0, accesses = 0;
};

/// The evictable storages in the order in which they became so: a list inside two arrays.
class EvictionPool {
public:
    explicit EvictionPool(std::size_t storages)
        : next_(storages + 1), previous_(storages + 1), end_(static_cast<int>(storages)) {
        next_[end_] = previous_[end_] = end_;
    }
    void add(core::StorageIndex s) {
        const core::StorageIndex last = previous_[end_];
        next_[last] = s, previous_[s] = last;
        next_[s] = end_, previous_[end_] = s;
        ++size_;
    }
    /// `s` must be in the pool.
    void remove(core::StorageIndex s) {
        next_[previous_[s]] = next_[s];
        previous_[next_[s]] = previous_[s];
        --size_;
    }
    core::StorageIndex first() const { return next_[end_]; }
    core::StorageIndex next(core::StorageIndex s) const { return next_[s]; }
    core::StorageIndex end() const { return end_; }
    std::size_t size() const { return size_; }

private:
    std::vector<core::StorageIndex> next_, previous_;
    core::StorageIndex end_;
    std::size_t size_ = 0;
};

}  // namespace hw::planners

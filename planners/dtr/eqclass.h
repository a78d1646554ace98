// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "planners/dtr/blockwise.h"

namespace hw::planners {

/// h_DTR^eq (section 4.1): the evicted neighbourhood approximated by undirected classes of evicted
/// storages, held in a union-find. An eviction joins the classes next to it. A rematerialization
/// takes the storage's compute out of its class, which is not split: a cheap overestimate.
class EqClassHeuristic final : public ComputeHeuristic {
public:
    EqClassHeuristic(DtrState& state, const HeuristicOptions& options);

    void resize(std::size_t storages) override;
    void announced(core::StorageIndex s) override;
    void linked(core::StorageIndex input, core::StorageIndex output) override;
    void materialized(const std::vector<core::StorageIndex>& made) override;
    void evicted(core::StorageIndex s) override;
    void banished(core::StorageIndex s) override;

private:
    struct Node {
        int parent, next;  // in the ring of the class
        core::StorageIndex storage;
        int members = 1;           // of the class, where the node is a root, as what follows
        std::int64_t compute = 0;  // ns
        std::int64_t stamp = -1;   // of the last score that counted the class
    };

    std::int64_t computeOf(core::StorageIndex s) override;
    double leastScore(core::StorageIndex s) override;
    void begin(core::StorageIndex s, std::int64_t compute);
    int root(int node);
    void merge(int from, int into);
    void leave(core::StorageIndex s);
    void loseNeighbour(core::StorageIndex s);
    void noteFall(int root, std::int64_t before, std::int64_t compute);

    bool simulated_;
    std::vector<Node> nodes_;
    std::vector<int> classOf_;  // per storage; -1 while it is resident
    std::int64_t stamp_ = 0;
};

}  // namespace hw::planners

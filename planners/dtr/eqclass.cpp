// SPDX-License-Identifier: MIT
#include "planners/dtr/eqclass.h"

#include <utility>

namespace hw::planners {

using namespace hw::core;

EqClassHeuristic::EqClassHeuristic(DtrState& state, bool simulated)
    : EvictionHeuristic(state), simulated_(simulated), classOf_(state.storages.size(), -1) {}

void EqClassHeuristic::announced(StorageIndex s) {
    if (simulated_ && !state_.storages[s].everMaterial) classOf_[s] = add(0);
}

void EqClassHeuristic::materialized(const std::vector<StorageIndex>& made) {
    for (const StorageIndex s : made) leave(s);
}

void EqClassHeuristic::evicted(StorageIndex s) {
    classOf_[s] = add(state_.storages[s].compute);
    for (const LinkTable* links : {&state_.parents, &state_.children}) {
        state_.accesses += links->tensors(s);
        links->forEach(s, [&](StorageIndex neighbour) {
            if (classOf_[neighbour] >= 0) merge(classOf_[neighbour], classOf_[s]);
        });
    }
}

void EqClassHeuristic::banished(StorageIndex s) {
    leave(s);
}

double EqClassHeuristic::score(StorageIndex s) {
    std::int64_t compute = state_.storages[s].compute;
    ++stamp_;
    for (const LinkTable* links : {&state_.parents, &state_.children}) {
        state_.accesses += links->tensors(s);
        links->forEach(s, [&](StorageIndex neighbour) {
            if (classOf_[neighbour] < 0) return;
            Node& node = nodes_[root(classOf_[neighbour])];
            if (std::exchange(node.stamp, stamp_) != stamp_) compute += node.compute;
        });
    }
    return scoreOf(s, compute);
}

/// That of a storage without evicted neighbours.
double EqClassHeuristic::leastScore(StorageIndex s) {
    return scoreOf(s, state_.storages[s].compute);
}

int EqClassHeuristic::add(std::int64_t compute) {
    nodes_.push_back({static_cast<int>(nodes_.size()), compute, -1});
    return static_cast<int>(nodes_.size()) - 1;
}

int EqClassHeuristic::root(int node) {
    int top = node;
    ++state_.accesses;
    for (; nodes_[top].parent != top; top = nodes_[top].parent) ++state_.accesses;
    while (nodes_[node].parent != top) node = std::exchange(nodes_[node].parent, top);
    return top;
}

void EqClassHeuristic::merge(int from, int into) {
    const int a = root(from), b = root(into);
    if (a == b) return;
    nodes_[a].parent = b;
    nodes_[b].compute += nodes_[a].compute;
}

void EqClassHeuristic::leave(StorageIndex s) {
    if (classOf_[s] < 0) return;
    const std::int64_t before = nodes_[root(classOf_[s])].compute;
    nodes_[root(classOf_[s])].compute = before - state_.storages[s].compute;  // two look-ups
    classOf_[s] = -1;
}

}  // namespace hw::planners

// SPDX-License-Identifier: MIT
#include "planners/dtr_eqclass.h"

#include <algorithm>
#include <utility>

#include "planners/dtr_score.h"

namespace hw::planners {

using namespace hw::core;

EqClassHeuristic::EqClassHeuristic(DtrState& state, bool simulated)
    : EvictionHeuristic(state),
      simulated_(simulated),
      classOf_(state.storages.size(), -1),
      neighbours_(state.storages.size()) {}

void EqClassHeuristic::linked(StorageIndex input, StorageIndex output) {
    if (input == output) return;
    auto &first = neighbours_[input], &second = neighbours_[output];
    const bool known = first.size() < second.size()
                           ? std::find(first.begin(), first.end(), output) != first.end()
                           : std::find(second.begin(), second.end(), input) != second.end();
    if (known) return;
    first.push_back(output);
    second.push_back(input);
}

void EqClassHeuristic::announced(StorageIndex s) {
    if (simulated_ && !state_.storages[s].everMaterial) classOf_[s] = add(0);
}

void EqClassHeuristic::materialized(const std::vector<StorageIndex>& made) {
    for (const StorageIndex s : made) leave(s);
}

void EqClassHeuristic::evicted(StorageIndex s) {
    classOf_[s] = add(state_.storages[s].compute);
    state_.accesses += edges(s);
    for (const StorageIndex neighbour : neighbours_[s])
        if (classOf_[neighbour] >= 0) merge(classOf_[neighbour], classOf_[s]);
}

void EqClassHeuristic::banished(StorageIndex s) {
    leave(s);
}

double EqClassHeuristic::score(StorageIndex s) {
    const DtrStorage& storage = state_.storages[s];
    std::int64_t compute = storage.compute;
    state_.accesses += edges(s);
    ++stamp_;
    for (const StorageIndex neighbour : neighbours_[s]) {
        if (classOf_[neighbour] < 0) continue;
        Node& node = nodes_[root(classOf_[neighbour])];
        if (std::exchange(node.stamp, stamp_) != stamp_) compute += node.compute;
    }
    return dtrScore(compute, storage.size, state_.clock - storage.lastAccess);
}

std::int64_t EqClassHeuristic::edges(StorageIndex s) const {
    return static_cast<std::int64_t>(state_.storages[s].parents.size() +
                                     state_.storages[s].children.size());
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
    nodes_[root(classOf_[s])].compute -= state_.storages[s].compute;
    classOf_[s] = -1;
}

}  // namespace hw::planners

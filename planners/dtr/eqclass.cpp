// SPDX-License-Identifier: MIT
#include "planners/dtr/eqclass.h"

#include <algorithm>
#include <utility>

namespace hw::planners {

using namespace hw::core;

EqClassHeuristic::EqClassHeuristic(DtrState& state, const HeuristicOptions& options)
    : ComputeHeuristic(state, options),
      simulated_(options.simulated),
      classOf_(state.storages.size(), -1) {}

void EqClassHeuristic::resize(std::size_t storages) {
    ComputeHeuristic::resize(storages);
    classOf_.resize(storages, -1);
}

void EqClassHeuristic::announced(StorageIndex s) {
    if (!simulated_ || state_.storages[s].everMaterial) return;
    loseNeighbour(s);  // of the class that it had, if any
    begin(s, 0);
}

void EqClassHeuristic::linked(StorageIndex input, StorageIndex output) {
    mayHaveFallen(input);  // classes can be negative
    mayHaveFallen(output);
}

void EqClassHeuristic::materialized(const std::vector<StorageIndex>& made) {
    for (const StorageIndex s : made) leave(s);
}

void EqClassHeuristic::evicted(StorageIndex s) {
    begin(s, state_.storages[s].compute);
    state_.accesses += state_.links.tensors(s);
    state_.links.forEach(s, [&](StorageIndex neighbour) {
        if (classOf_[neighbour] >= 0) merge(classOf_[neighbour], classOf_[s]);
    });
}

void EqClassHeuristic::banished(StorageIndex s) {
    leave(s);
}

/// Its own, and that of the classes next to it.
std::int64_t EqClassHeuristic::computeOf(StorageIndex s) {
    std::int64_t compute = state_.storages[s].compute;
    ++stamp_;
    state_.accesses += state_.links.tensors(s);
    state_.links.forEach(s, [&](StorageIndex neighbour) {
        if (classOf_[neighbour] < 0) return;
        Node& node = nodes_[root(classOf_[neighbour])];
        if (std::exchange(node.stamp, stamp_) != stamp_) compute += node.compute;
    });
    return compute;
}

/// That of a storage without evicted neighbours.
double EqClassHeuristic::leastScore(StorageIndex s) {
    return scoreOf(s, state_.storages[s].compute);
}

/// It is a class of its own.
void EqClassHeuristic::begin(StorageIndex s, std::int64_t compute) {
    const auto index = static_cast<int>(nodes_.size());
    Node node{index, index, s};
    node.compute = compute;
    classOf_[s] = index;
    nodes_.push_back(node);
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
    for (const int node : {a, b})  // what was next to one of them is next to both
        mayAllHaveFallen(std::max<std::int64_t>(0, -nodes_[node].compute));
    std::swap(nodes_[a].next, nodes_[b].next);
    nodes_[b].members += nodes_[a].members;
    nodes_[a].parent = b;
    nodes_[b].compute += nodes_[a].compute;
}

void EqClassHeuristic::leave(StorageIndex s) {
    if (classOf_[s] < 0) return;
    const std::int64_t before = nodes_[root(classOf_[s])].compute;
    const int top = root(classOf_[s]);  // two look-ups
    nodes_[top].compute = before - state_.storages[s].compute;
    --nodes_[top].members;
    if (nodes_[top].compute < 0) mayBeLessThanOwn();
    loseNeighbour(s);
    classOf_[s] = -1;
    noteFall(top, before, state_.storages[s].compute);
}

/// That of a class, by the compute of a storage that has left it. What is next to a small one is
/// looked at again; next to a large one it is a small share of what it was.
void EqClassHeuristic::noteFall(int root, std::int64_t before, std::int64_t compute) {
    constexpr int kFew = 64;
    mayAllHaveFallen(compute);
    if (!blocks_ || compute == 0) return;
    if (nodes_[root].members > kFew) {
        mayAllHaveLost(static_cast<double>(compute) / static_cast<double>(before));
        return;
    }
    for (int node = root;;) {
        const int next = nodes_[node].next;
        if (classOf_[nodes_[next].storage] == next)
            loseNeighbour(nodes_[next].storage);
        else if (next != root)
            nodes_[node].next = nodes_[next].next;  // it has left
        if (next == root) return;
        if (nodes_[node].next == next) node = next;
    }
}

// Storages next to `s` may be next to nothing else of its class.
void EqClassHeuristic::loseNeighbour(StorageIndex s) {
    if (!blocks_ || classOf_[s] < 0) return;
    state_.links.forEach(s, [&](StorageIndex neighbour) { mayHaveFallen(neighbour); });
}

}  // namespace hw::planners

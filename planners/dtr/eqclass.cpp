// SPDX-License-Identifier: MIT
#include "planners/dtr/eqclass.h"

#include <algorithm>
#include <utility>

namespace hw::planners {

using namespace hw::core;

namespace {

constexpr std::size_t kLarge = 1024;  // a pool in which most storages are passed over

}  // namespace

template <typename Visit>
void EqClassHeuristic::forEachNeighbour(StorageIndex s, Visit visit) const {
    for (const LinkTable* links : {&state_.parents, &state_.children}) links->forEach(s, visit);
}

EqClassHeuristic::EqClassHeuristic(DtrState& state, bool simulated, bool everywhere)
    : EvictionHeuristic(state), simulated_(simulated), classOf_(state.storages.size(), -1) {
    if (everywhere) blocks_.emplace(state);
}

void EqClassHeuristic::resize(std::size_t storages) {
    classOf_.resize(storages, -1);
    if (blocks_) blocks_->resize(storages);
}

void EqClassHeuristic::entered(StorageIndex s) {
    if (blocks_) blocks_->enter(s);
}

void EqClassHeuristic::left(StorageIndex s) {
    if (blocks_) blocks_->leave(s);
}

void EqClassHeuristic::announced(StorageIndex s) {
    if (!simulated_ || state_.storages[s].everMaterial) return;
    loseNeighbour(s);  // of the class that it had, if any
    classOf_[s] = add(0);
}

void EqClassHeuristic::linked(StorageIndex input, StorageIndex output) {
    if (!blocks_) return;
    blocks_->mayHaveFallen(input);  // classes can be negative
    blocks_->mayHaveFallen(output);
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

StorageIndex EqClassHeuristic::choose(const EvictionPool& pool) {
    if (!blocks_ || pool.size() < kLarge) return EvictionHeuristic::choose(pool);
    const auto [storage, score] = blocks_->lowest([this](StorageIndex s) { return computeOf(s); });
    if (score <= 0) return EvictionHeuristic::choose(pool);  // which of them depends on the order
    state_.evals += static_cast<std::int64_t>(pool.size());
    return storage;
}

double EqClassHeuristic::score(StorageIndex s) {
    return scoreOf(s, computeOf(s));
}

/// What it would take to have `s` again (ns): its own and that of the classes next to it.
std::int64_t EqClassHeuristic::computeOf(StorageIndex s) {
    std::int64_t compute = state_.storages[s].compute;
    ++stamp_;
    state_.accesses += state_.parents.tensors(s) + state_.children.tensors(s);
    forEachNeighbour(s, [&](StorageIndex neighbour) {
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
    if (blocks_)
        for (const int node : {a, b})  // what was next to one of them is next to both
            blocks_->mayAllHaveFallen(std::max<std::int64_t>(0, -nodes_[node].compute));
    nodes_[a].parent = b;
    nodes_[b].compute += nodes_[a].compute;
}

void EqClassHeuristic::leave(StorageIndex s) {
    if (classOf_[s] < 0) return;
    const std::int64_t before = nodes_[root(classOf_[s])].compute;
    Node& node = nodes_[root(classOf_[s])];  // two look-ups
    node.compute = before - state_.storages[s].compute;
    if (blocks_) {
        blocks_->mayAllHaveFallen(state_.storages[s].compute);
        if (node.compute < 0) blocks_->mayBeLessThanOwn();
    }
    loseNeighbour(s);
    classOf_[s] = -1;
}

// Storages next to `s` may be next to nothing else of its class.
void EqClassHeuristic::loseNeighbour(StorageIndex s) {
    if (!blocks_ || classOf_[s] < 0) return;
    forEachNeighbour(s, [&](StorageIndex neighbour) { blocks_->mayHaveFallen(neighbour); });
}

}  // namespace hw::planners

// SPDX-License-Identifier: MIT
#include "planners/dtr/blockwise.h"

namespace hw::planners {

using namespace hw::core;

namespace {

constexpr std::size_t kLarge = 1024;  // a pool in which most storages are passed over

}  // namespace

BlockwiseHeuristic::BlockwiseHeuristic(DtrState& state, bool everywhere)
    : EvictionHeuristic(state) {
    if (everywhere) blocks_.emplace(state);
}

void BlockwiseHeuristic::resize(std::size_t storages) {
    if (blocks_) blocks_->resize(storages);
}

void BlockwiseHeuristic::entered(StorageIndex s) {
    if (blocks_) blocks_->enter(s);
}

void BlockwiseHeuristic::left(StorageIndex s) {
    if (blocks_) blocks_->leave(s);
}

StorageIndex BlockwiseHeuristic::choose(const EvictionPool& pool) {
    if (!blocks_ || pool.size() < kLarge) return EvictionHeuristic::choose(pool);
    const auto [storage, score] = blocks_->lowest([this](StorageIndex s) {
        ++state_.accesses;
        return computeOf(s);
    });
    if (score <= 0) return EvictionHeuristic::choose(pool);  // which of them depends on the order
    state_.evals += static_cast<std::int64_t>(pool.size());
    return storage;
}

}  // namespace hw::planners

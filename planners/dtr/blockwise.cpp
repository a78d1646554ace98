// SPDX-License-Identifier: MIT
#include "planners/dtr/blockwise.h"

#include <algorithm>

#include "planners/dtr/score.h"

namespace hw::planners {

using namespace hw::core;

namespace {

constexpr double kRounding = 1 - 1e-9;  // far more than what the doubles here are off

}  // namespace

ComputeHeuristic::ComputeHeuristic(DtrState& state, const HeuristicOptions& options)
    : EvictionHeuristic(state), largePool_(options.largePool) {
    if (!options.some) blocks_.emplace(state.storages.size());
}

void ComputeHeuristic::resize(std::size_t storages) {
    if (blocks_) blocks_->resize(storages);
}

void ComputeHeuristic::entered(StorageIndex s) {
    if (blocks_) blocks_->enter(s);
}

void ComputeHeuristic::left(StorageIndex s) {
    if (blocks_) blocks_->leave(s);
}

StorageIndex ComputeHeuristic::choose(const EvictionPool& pool) {
    if (!blocks_ || pool.size() < largePool_) return EvictionHeuristic::choose(pool);
    const auto [storage, score] =
        blocks_->lowest([this](const ComputeBounds& block) { return boundOf(block); },
                        [this](StorageIndex s, ComputeBounds& block, double lowest) {
                            ++state_.accesses;
                            return take(s, block, lowest);
                        });
    if (score <= 0) return EvictionHeuristic::choose(pool);  // the order of the pool decides
    state_.evals += static_cast<std::int64_t>(pool.size());
    return storage;
}

double ComputeHeuristic::boundOf(const ComputeBounds& block) const {
    double least = block.all - (fallen_ - block.fallenBefore) / block.size;
    if (atLeastOwn_ && least < block.own) least = block.own;
    const std::int64_t staleness = state_.clock - block.lastAccess;
    if (staleness <= 0) return ComputeBounds::kHigh;
    return least > 0 ? least / static_cast<double>(staleness) * kRounding : -ComputeBounds::kHigh;
}

double ComputeHeuristic::take(StorageIndex s, ComputeBounds& block, double lowest) {
    const DtrStorage& storage = state_.storages[s];
    const std::int64_t compute = computeOf(s);
    const std::int64_t staleness = state_.clock - storage.lastAccess;
    block.fallenBefore = fallen_;
    block.lastAccess = std::min(block.lastAccess, storage.lastAccess);
    if (storage.size > 0) {  // otherwise its score is infinite
        const auto size = static_cast<double>(storage.size);
        const double quotient = static_cast<double>(compute) / size;
        block.own = std::min(block.own, static_cast<double>(storage.compute) / size);
        block.all = std::min(block.all, quotient);
        block.size = std::min(block.size, size);
        // An exact division takes longer than all the rest.
        if (quotient * kRounding > lowest * static_cast<double>(staleness))
            return ComputeBounds::kHigh;
    }
    return dtrScore(compute, storage.size, staleness);
}

}  // namespace hw::planners

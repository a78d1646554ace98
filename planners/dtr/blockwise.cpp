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
    if (options.some) return;
    blocks_.emplace(state.storages.size());
    known_.resize(state.storages.size());
}

void ComputeHeuristic::resize(std::size_t storages) {
    if (!blocks_) return;
    blocks_->resize(storages);
    known_.resize(storages);
}

void ComputeHeuristic::entered(StorageIndex s) {
    if (blocks_) blocks_->enter(s);
}

void ComputeHeuristic::left(StorageIndex s) {
    if (blocks_) blocks_->leave(s);
}

StorageIndex ComputeHeuristic::choose(const EvictionPool& pool) {
    if (!blocks_ || pool.size() < largePool_) return EvictionHeuristic::choose(pool);
    const auto [storage, score] = blocks_->lowest(
        [this](const ComputeBounds& block) { return boundOf(block); },
        [this](ComputeBounds& group, const ComputeBounds& block) { join(group, block); },
        [this](StorageIndex s, ComputeBounds& block, double lowest) {
            return take(s, block, lowest);
        });
    if (score <= 0) return EvictionHeuristic::choose(pool);  // the order of the pool decides
    state_.evals += static_cast<std::int64_t>(pool.size());
    return storage;
}

double ComputeHeuristic::boundOf(const ComputeBounds& block) const {
    double least = leastQuotient(block);
    if (atLeastOwn_ && least < block.own) least = block.own;
    const std::int64_t staleness = state_.clock - block.lastAccess;
    if (staleness <= 0) return ComputeBounds::kHigh;
    const double bound =
        std::max(least / static_cast<double>(staleness), leastLeft(block) / height(block));
    return bound > 0 ? bound * kRounding : -ComputeBounds::kHigh;
}

double ComputeHeuristic::leastQuotient(const ComputeBounds& block) const {
    return std::max(block.all - (fallen_ - block.fallenBefore) / block.size,
                    block.all * kept(block.lostBefore));
}

/// The share that is left at least of any compute.
double ComputeHeuristic::leastLeft(const ComputeBounds& block) const {
    return std::max(1 - (fallen_ - block.fallenBefore) / block.canFall, kept(block.lostBefore));
}

/// No line stands higher, as long as computes are what they were.
double ComputeHeuristic::height(const ComputeBounds& block) const {
    return block.height + block.slope * static_cast<double>(state_.clock - block.taken);
}

void ComputeHeuristic::isOfNow(ComputeBounds& block) const {
    block.fallenBefore = fallen_;
    block.lostBefore = lost_;
    block.taken = state_.clock;
}

void ComputeHeuristic::join(ComputeBounds& group, const ComputeBounds& block) const {
    constexpr double kHigh = ComputeBounds::kHigh;
    const double left = leastLeft(block);
    isOfNow(group);
    group.lastAccess = std::min(group.lastAccess, block.lastAccess);
    group.own = std::min(group.own, block.own);
    group.all = std::min(group.all, leastQuotient(block));
    group.size = std::min(group.size, block.size);
    group.height = std::max(group.height, left > 0 ? height(block) / left : kHigh);
    group.slope = std::max(group.slope, left > 0 ? block.slope / left : kHigh);
    group.canFall = std::min(group.canFall, left > 0 ? block.canFall * left : kHigh);
}

double ComputeHeuristic::take(StorageIndex s, ComputeBounds& block, double lowest) {
    const DtrStorage& storage = state_.storages[s];
    const auto size = static_cast<double>(storage.size);
    const auto staleness = static_cast<double>(state_.clock - storage.lastAccess);
    const auto own = static_cast<double>(storage.compute);
    double compute = leastCompute(s);
    const bool passed = compute > 0 && compute * kRounding > lowest * size * staleness;
    if (!passed) {
        ++state_.accesses;
        compute = static_cast<double>(computeOf(s));
        known_[s] = {compute, fallen_, lost_};
    }
    isOfNow(block);
    block.lastAccess = std::min(block.lastAccess, storage.lastAccess);
    if (storage.size > 0) {  // otherwise its score is infinite
        const double quotient = compute / size;
        block.own = std::min(block.own, own / size);
        block.all = std::min(block.all, quotient);
        block.size = std::min(block.size, size);
        block.slope = std::max(block.slope, compute > 0 ? 1 / quotient : ComputeBounds::kHigh);
        block.height =
            std::max(block.height, compute > 0 ? staleness / quotient : ComputeBounds::kHigh);
        if (compute != own || !atLeastOwn_) block.canFall = std::min(block.canFall, compute);
        // An exact division takes longer than all the rest.
        if (passed || quotient * kRounding > lowest * staleness) return ComputeBounds::kHigh;
    }
    return dtrScore(static_cast<std::int64_t>(compute), storage.size,
                    state_.clock - storage.lastAccess);
}

/// No more than computeOf().
double ComputeHeuristic::leastCompute(StorageIndex s) const {
    const Known& known = known_[s];
    double least = known.compute - (fallen_ - known.fallenBefore);
    if (known.compute > 0) least = std::max(least, known.compute * kept(known.lostBefore));
    return atLeastOwn_ ? std::max(least, static_cast<double>(state_.storages[s].compute)) : least;
}

}  // namespace hw::planners

// SPDX-License-Identifier: MIT
#include "planners/dtr/blockwise.h"

#include <algorithm>

#include "planners/dtr/score.h"

namespace hw::planners {

using namespace hw::core;

namespace {

constexpr double kRounding = 1 - 1e-9;  // far more than what the doubles here are off

}  // namespace

StorageIndex RisingHeuristic::choose(const EvictionPool& pool) {
    return chooseBy(
        pool, [](const LeastScore& block) { return block.score; },
        [this](StorageIndex s, LeastScore& block, double /*lowest*/) {
            ++state_.accesses;
            const double own = score(s);
            block.score = std::min(block.score, own);
            return own;
        });
}

StorageIndex ComputeHeuristic::choose(const EvictionPool& pool) {
    return chooseBy(
        pool, [this](const ComputeBounds& block) { return boundOf(block); },
        [this](StorageIndex s, ComputeBounds& block, double lowest) {
            ++state_.accesses;
            return take(s, block, lowest);
        });
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

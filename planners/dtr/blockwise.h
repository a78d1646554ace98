// SPDX-License-Identifier: MIT
// Heuristics that look at a few blocks of a large pool: accesses are fewer than the simulator's,
// choices and evaluations the same.
#pragma once

#include <optional>

#include "planners/dtr/heuristics.h"
#include "planners/dtr/pool_blocks.h"

namespace hw::planners {

template <typename Bounds>
class BlockwiseHeuristic : public EvictionHeuristic {
public:
    BlockwiseHeuristic(DtrState& state, const HeuristicOptions& options)
        : EvictionHeuristic(state), largePool_(options.largePool) {
        if (!options.some) blocks_.emplace(state.storages.size());
    }

    void resize(std::size_t storages) override {
        if (blocks_) blocks_->resize(storages);
    }
    void entered(core::StorageIndex s) override {
        if (blocks_) blocks_->enter(s);
    }
    void left(core::StorageIndex s) override {
        if (blocks_) blocks_->leave(s);
    }

protected:
    /// choose(), by PoolBlocks::lowest() of these.
    template <typename BoundOf, typename Take>
    core::StorageIndex chooseBy(const EvictionPool& pool, BoundOf boundOf, Take take) {
        if (!blocks_ || pool.size() < largePool_) return EvictionHeuristic::choose(pool);
        const auto [storage, score] = blocks_->lowest(boundOf, take);
        if (score <= 0) return EvictionHeuristic::choose(pool);  // the order of the pool decides
        state_.evals += static_cast<std::int64_t>(pool.size());
        return storage;
    }

    std::optional<PoolBlocks<Bounds>> blocks_;  // none: choose() need not be quick

private:
    std::size_t largePool_;
};

struct LeastScore {
    double score = std::numeric_limits<double>::infinity();
};

/// Scores that never fall while a storage is in the pool.
class RisingHeuristic : public BlockwiseHeuristic<LeastScore> {
public:
    using BlockwiseHeuristic::BlockwiseHeuristic;
    core::StorageIndex choose(const EvictionPool& pool) override;
};

/// Of a block: lowest quotients, of computes and sizes (ns / byte), when they were taken.
struct ComputeBounds {
    static constexpr double kHigh = std::numeric_limits<double>::infinity();
    double own = kHigh, all = kHigh;  // of the storages' own computes, and their neighbours' too
    double size = kHigh;              // the smallest, bytes
    double fallenBefore = 0;          // ComputeHeuristic::fallen_ at the time
    std::int64_t lastAccess = std::numeric_limits<std::int64_t>::max();  // the earliest
};

/// Scores of a compute over size and staleness, dtrScore(): no lower than the lowest quotient of
/// the first two over the greatest staleness, as long as computes and last accesses grow; whoever
/// lets a compute fall says so.
class ComputeHeuristic : public BlockwiseHeuristic<ComputeBounds> {
public:
    using BlockwiseHeuristic::BlockwiseHeuristic;
    core::StorageIndex choose(const EvictionPool& pool) override;

protected:
    /// What it would take to have `s` again (ns).
    virtual std::int64_t computeOf(core::StorageIndex s) = 0;
    double score(core::StorageIndex s) final { return scoreOf(s, computeOf(s)); }

    /// That of `s` may have fallen, by any amount.
    void mayHaveFallen(core::StorageIndex s) {
        if (blocks_) blocks_->forget(s);
    }
    /// That of any storage with evicted neighbours may have fallen, by `compute` (ns) at most.
    void mayAllHaveFallen(std::int64_t compute) { fallen_ += static_cast<double>(compute); }
    /// From now on, that of a storage may be less than its own.
    void mayBeLessThanOwn() { atLeastOwn_ = false; }

private:
    double boundOf(const ComputeBounds& block) const;
    double take(core::StorageIndex s, ComputeBounds& block, double lowest);

    double fallen_ = 0;  // ns
    bool atLeastOwn_ = true;
};

}  // namespace hw::planners

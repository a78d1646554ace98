// SPDX-License-Identifier: MIT
// A heuristic that looks at a few blocks of a large pool: accesses are fewer than the simulator's,
// choices and evaluations the same.
#pragma once

#include <optional>

#include "planners/dtr/heuristics.h"
#include "planners/dtr/pool_blocks.h"

namespace hw::planners {

/// Of a block, or several: lowest quotients, of computes and sizes (ns / byte), when they were
/// taken; and how high its lines stood then, size by staleness over compute, an inverse score
/// (byte).
struct ComputeBounds {
    static constexpr double kHigh = std::numeric_limits<double>::infinity();
    double own = kHigh, all = kHigh;  // of the storages' own computes, and their neighbours' too
    double size = kHigh;              // the smallest, bytes
    double height = 0, slope = 0;     // the highest and the steepest (byte / ns) of them
    double canFall = kHigh;           // the least compute that is more than the storage's own, ns
    double fallenBefore = 0, lostBefore = 0;  // ComputeHeuristic's at the time
    std::int64_t taken = 0;                   // clock
    std::int64_t lastAccess = std::numeric_limits<std::int64_t>::max();  // the earliest
};

/// Scores of a compute over size and staleness, dtrScore(): no lower than the lowest quotient of
/// the first two over the greatest staleness, nor than the inverse of the highest line once that
/// has risen as steeply as any, as long as computes and last accesses grow; whoever lets a compute
/// fall says so: of one storage, or by how much that of any may have fallen, and by which share.
class ComputeHeuristic : public EvictionHeuristic {
public:
    ComputeHeuristic(DtrState& state, const HeuristicOptions& options);

    void resize(std::size_t storages) override;
    void entered(core::StorageIndex s) override;
    void left(core::StorageIndex s) override;
    core::StorageIndex choose(const EvictionPool& pool) override;

protected:
    /// What it would take to have `s` again (ns).
    virtual std::int64_t computeOf(core::StorageIndex s) = 0;
    double score(core::StorageIndex s) final { return scoreOf(s, computeOf(s)); }

    /// That of `s` may have fallen, by any amount.
    void mayHaveFallen(core::StorageIndex s) {
        if (!blocks_) return;
        blocks_->forget(s);
        known_[s] = {};
    }
    /// That of any storage with evicted neighbours may have fallen, by `compute` (ns) at most.
    void mayAllHaveFallen(std::int64_t compute) { fallen_ += static_cast<double>(compute); }
    /// As long as none is less than a storage's own: it was by no larger share than this.
    void mayAllHaveLost(double share) { lost_ += share; }
    /// From now on, that of a storage may be less than its own.
    void mayBeLessThanOwn() { atLeastOwn_ = false; }

    std::optional<PoolBlocks<ComputeBounds>> blocks_;  // none: choose() need not be quick

private:
    double boundOf(const ComputeBounds& block) const;
    double leastQuotient(const ComputeBounds& block) const;
    double leastLeft(const ComputeBounds& block) const;
    double height(const ComputeBounds& block) const;
    void isOfNow(ComputeBounds& block) const;
    void join(ComputeBounds& group, const ComputeBounds& block) const;
    double take(core::StorageIndex s, ComputeBounds& block, double lowest);
    double leastCompute(core::StorageIndex s) const;
    /// At least this share of a compute is left since then; 0: not known.
    double kept(double lostBefore) const {
        return atLeastOwn_ ? std::max(0.0, 1 - (lost_ - lostBefore)) : 0;
    }

    /// A compute (ns), and fallen_ and lost_ when it was found.
    struct Known {
        double compute = -std::numeric_limits<double>::infinity();
        double fallenBefore = 0, lostBefore = 0;
    };
    std::vector<Known> known_;  // per storage
    const std::size_t largePool_;
    double fallen_ = 0;  // ns
    double lost_ = 0;    // shares: no less than one minus their sum is left
    bool atLeastOwn_ = true;
};

}  // namespace hw::planners

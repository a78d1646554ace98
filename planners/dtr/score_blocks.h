// SPDX-License-Identifier: MIT
// The lowest score of a large pool without looking at all of it. In C++17, as frameworks ask for.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "planners/dtr/score.h"
#include "planners/dtr/state.h"

namespace hw::planners {

/// The evictable storages in blocks of 64 that came into being together, each block with a bound
/// below its scores: the lowest quotient of compute and size over the greatest staleness. The bound
/// stays one while computes and last accesses grow; whoever lets a compute fall says so. A block
/// whose bound is above the lowest score found so far is passed over, so that a choice looks at a
/// few blocks where it would look at every storage, and is the same.
class ScoreBlocks {
public:
    explicit ScoreBlocks(const DtrState& state) : state_(state) { resize(state.storages.size()); }
    void resize(std::size_t storages) {
        blocks_.resize((storages + 63) / 64);
        order_.resize(storages);
    }

    void enter(core::StorageIndex s);
    void leave(core::StorageIndex s) { blocks_[s >> 6].members &= ~bit(s); }
    /// The compute of `s` may have fallen, by any amount.
    void mayHaveFallen(core::StorageIndex s) { blocks_[s >> 6].known = false; }
    /// The compute of any storage with evicted neighbours may have fallen, by `compute` (ns) at
    /// most.
    void mayAllHaveFallen(std::int64_t compute) { fallen_ += static_cast<double>(compute); }
    /// From now on, the compute of a storage may be less than its own.
    void mayBeLessThanOwn() { atLeastOwn_ = false; }

    struct Choice {
        core::StorageIndex storage = core::kNone;
        double score = std::numeric_limits<double>::infinity();
    };
    /// The lowest score, of equals the storage that came last into the pool.
    /// @param computeOf compute (ns) of a storage, its neighbours' with it
    template <typename ComputeOf>
    Choice lowest(ComputeOf computeOf);

private:
    struct Block {
        std::uint64_t members = 0;
        double own = 0,
               all = 0;   // lowest compute over size (ns / byte), own and neighbours' with it
        double size = 0;  // the smallest, bytes
        double fallenBefore = 0;      // fallen_ when these were taken
        std::int64_t lastAccess = 0;  // the earliest
        bool known = false;           // the above holds
        bool listed = false;          // in active_
    };

    static constexpr double kRounding = 1 - 1e-9;  // far more than what the doubles here are off

    static std::uint64_t bit(core::StorageIndex s) { return std::uint64_t{1} << (s & 63); }
    double boundOf(const Block& block) const;
    template <typename ComputeOf>
    void look(std::int32_t index, ComputeOf& computeOf, Choice& best);

    const DtrState& state_;
    std::vector<Block> blocks_;
    std::vector<std::int32_t> active_;  // blocks with members, and some without
    std::vector<double> bounds_;        // of active_, while a choice is made
    std::vector<std::int64_t> order_;   // per storage: which entry into the pool was its last
    std::int64_t entries_ = 0;
    double fallen_ = 0;  // ns
    bool atLeastOwn_ = true;
};

inline void ScoreBlocks::enter(core::StorageIndex s) {
    Block& block = blocks_[s >> 6];
    block.members |= bit(s);
    block.known = false;
    order_[s] = ++entries_;
    if (block.listed) return;
    block.listed = true;
    active_.push_back(s >> 6);
}

inline double ScoreBlocks::boundOf(const Block& block) const {
    double least = block.all - (fallen_ - block.fallenBefore) / block.size;
    if (atLeastOwn_ && least < block.own) least = block.own;
    const std::int64_t staleness = state_.clock - block.lastAccess;
    if (staleness <= 0) return std::numeric_limits<double>::infinity();
    return least > 0 ? least / static_cast<double>(staleness) * kRounding
                     : -std::numeric_limits<double>::infinity();
}

template <typename ComputeOf>
void ScoreBlocks::look(std::int32_t index, ComputeOf& computeOf, Choice& best) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    Block& block = blocks_[index];
    block.own = block.all = block.size = kInfinity;
    block.lastAccess = std::numeric_limits<std::int64_t>::max();
    block.fallenBefore = fallen_;
    block.known = true;
    for (std::uint64_t bits = block.members; bits != 0; bits &= bits - 1) {
        const core::StorageIndex s = index * 64 + lowestBit(bits);
        const DtrStorage& storage = state_.storages[s];
        const std::int64_t compute = computeOf(s);
        const std::int64_t staleness = state_.clock - storage.lastAccess;
        if (storage.lastAccess < block.lastAccess) block.lastAccess = storage.lastAccess;
        if (storage.size > 0) {
            const auto size = static_cast<double>(storage.size);
            const double quotient = static_cast<double>(compute) / size;
            block.own = std::min(block.own, static_cast<double>(storage.compute) / size);
            block.all = std::min(block.all, quotient);
            block.size = std::min(block.size, size);
            // An exact division takes longer than all the rest.
            if (quotient * kRounding > best.score * static_cast<double>(staleness)) continue;
        }
        const double score = dtrScore(compute, storage.size, staleness);
        if (score < best.score || best.storage == core::kNone ||
            (score == best.score && order_[s] > order_[best.storage]))
            best = {s, score};
    }
}

template <typename ComputeOf>
ScoreBlocks::Choice ScoreBlocks::lowest(ComputeOf computeOf) {
    Choice best;
    bounds_.clear();
    std::size_t next = 0;  // the lowest bound
    for (std::size_t i = 0; i < active_.size();) {
        Block& block = blocks_[active_[i]];
        if (block.members == 0) {
            block.listed = false;
            active_[i] = active_.back();
            active_.pop_back();
            continue;
        }
        if (block.known) {
            bounds_.push_back(boundOf(block));
        } else {
            look(active_[i], computeOf, best);
            bounds_.push_back(std::numeric_limits<double>::infinity());  // done
        }
        if (bounds_[i] < bounds_[next]) next = i;
        ++i;
    }
    if (active_.empty()) return best;
    if (bounds_[next] <= best.score) look(active_[next], computeOf, best);
    for (std::size_t i = 0; i < active_.size(); ++i)
        if (i != next && bounds_[i] <= best.score) look(active_[i], computeOf, best);
    return best;
}

}  // namespace hw::planners

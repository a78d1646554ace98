// SPDX-License-Identifier: MIT
// The lowest score of a large pool without looking at all of it. In C++17, as frameworks ask for.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "planners/dtr/storage_set.h"

namespace hw::planners {

/// The evictable storages in blocks of 64 that came into being together, each block with what
/// bounds its scores from below. A block whose bound is above the lowest score found so far is
/// passed over, so that a choice looks at a few blocks where it would look at every storage, and
/// is the same. `Bounds` is taken anew, from a default one, whenever a block is looked at.
template <typename Bounds>
class PoolBlocks {
public:
    explicit PoolBlocks(std::size_t storages) { resize(storages); }
    void resize(std::size_t storages) {
        blocks_.resize((storages + 63) / 64);
        order_.resize(storages);
    }

    void enter(core::StorageIndex s) {
        Block& block = blocks_[s >> 6];
        block.members |= bit(s);
        block.known = false;
        order_[s] = ++entries_;
        if (block.listed) return;
        block.listed = true;
        active_.push_back(s >> 6);
    }
    void leave(core::StorageIndex s) { blocks_[s >> 6].members &= ~bit(s); }
    /// The bounds of its block hold no longer.
    void forget(core::StorageIndex s) { blocks_[s >> 6].known = false; }

    struct Choice {
        core::StorageIndex storage = core::kNone;
        double score = std::numeric_limits<double>::infinity();
    };
    /// The lowest score, of equals the storage that came last into the pool.
    /// @param boundOf of a block's bounds: no score of its storages is below it
    /// @param take adds a storage to the bounds of its block and returns its score, or infinity
    ///     where that is above the lowest so far, its third argument
    template <typename BoundOf, typename Take>
    Choice lowest(BoundOf boundOf, Take take);

private:
    struct Block {
        std::uint64_t members = 0;
        Bounds bounds;
        bool known = false;   // the bounds hold
        bool listed = false;  // in active_
    };

    static std::uint64_t bit(core::StorageIndex s) { return std::uint64_t{1} << (s & 63); }
    template <typename Take>
    void look(std::int32_t index, Take& take, Choice& best);

    std::vector<Block> blocks_;
    std::vector<std::int32_t> active_;  // blocks with members, and some without
    std::vector<double> lows_;          // bounds of active_, while a choice is made
    std::vector<std::int64_t> order_;   // per storage: which entry into the pool was its last
    std::int64_t entries_ = 0;
};

template <typename Bounds>
template <typename Take>
void PoolBlocks<Bounds>::look(std::int32_t index, Take& take, Choice& best) {
    Block& block = blocks_[index];
    block.bounds = Bounds();
    block.known = true;
    for (std::uint64_t bits = block.members; bits != 0; bits &= bits - 1) {
        const core::StorageIndex s = index * 64 + lowestBit(bits);
        const double score = take(s, block.bounds, best.score);
        if (score < best.score || best.storage == core::kNone ||
            (score == best.score && order_[s] > order_[best.storage]))
            best = {s, score};
    }
}

template <typename Bounds>
template <typename BoundOf, typename Take>
typename PoolBlocks<Bounds>::Choice PoolBlocks<Bounds>::lowest(BoundOf boundOf, Take take) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    Choice best;
    lows_.clear();
    std::size_t next = 0;  // the lowest bound
    for (std::size_t i = 0; i < active_.size();) {
        Block& block = blocks_[active_[i]];
        if (block.members == 0) {
            block.listed = false;
            active_[i] = active_.back();
            active_.pop_back();
            continue;
        }
        lows_.push_back(block.known ? boundOf(block.bounds) : kInfinity);
        if (!block.known) look(active_[i], take, best);
        if (lows_[i] < lows_[next]) next = i;
        ++i;
    }
    if (active_.empty()) return best;
    if (lows_[next] <= best.score) look(active_[next], take, best);
    for (std::size_t i = 0; i < active_.size(); ++i)
        if (i != next && lows_[i] <= best.score) look(active_[i], take, best);
    return best;
}

}  // namespace hw::planners

// SPDX-License-Identifier: MIT
// The lowest score of a large pool without looking at all of it. In C++17, as frameworks ask for.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "planners/dtr/storage_set.h"

namespace hw::planners {

/// The evictable storages in blocks of 64 that came into being together, and 64 blocks in a group,
/// each with what bounds its scores from below. A group or a block whose bound is above the lowest
/// score found so far is passed over, so that a choice looks at a few blocks where it would look at
/// every storage, and is the same. `Bounds` are taken anew, from default ones, whenever a block is
/// looked at; those of a group are those of its blocks taken together.
template <typename Bounds>
class PoolBlocks {
public:
    explicit PoolBlocks(std::size_t storages) { resize(storages); }
    void resize(std::size_t storages) {
        blocks_.resize((storages + 63) / 64);
        groups_.resize((blocks_.size() + 63) / 64);
        order_.resize(storages);
    }

    void enter(core::StorageIndex s) {
        blocks_[s >> 6].members |= bit(s);
        groups_[s >> 12].members |= bit(s >> 6);
        forget(s);
        order_[s] = ++entries_;
    }
    void leave(core::StorageIndex s) {
        Part& block = blocks_[s >> 6];
        block.members &= ~bit(s);
        if (block.members == 0) groups_[s >> 12].members &= ~bit(s >> 6);
    }
    /// The bounds of its block hold no longer.
    void forget(core::StorageIndex s) {
        blocks_[s >> 6].known = false;
        groups_[s >> 12].known = false;
    }

    struct Choice {
        core::StorageIndex storage = core::kNone;
        double score = std::numeric_limits<double>::infinity();
    };
    /// The lowest score, of equals the storage that came last into the pool.
    /// @param boundOf of bounds: no score of their storages is below it
    /// @param join widens the bounds of a group, its first argument, by those of a block
    /// @param take adds a storage to the bounds of its block and returns its score, or infinity
    ///     where that is above the lowest so far, its third argument
    template <typename BoundOf, typename Join, typename Take>
    Choice lowest(BoundOf boundOf, Join join, Take take);

private:
    /// A block, of storages, or a group, of blocks.
    struct Part {
        std::uint64_t members = 0;  // those in the pool, or with some there
        Bounds bounds;
        bool known = false;  // the bounds hold
    };

    static constexpr double kLooked = std::numeric_limits<double>::quiet_NaN();  // instead of a low

    static std::uint64_t bit(std::int32_t i) { return std::uint64_t{1} << (i & 63); }
    template <typename Visit>
    static void forEachBit(std::uint64_t bits, Visit visit) {
        for (; bits != 0; bits &= bits - 1) visit(lowestBit(bits));
    }
    template <typename Each, typename BoundOf, typename Look>
    static void lookInTurn(const Part* parts, double* lows, Each each, BoundOf& boundOf,
                           const Choice& best, Look look);
    template <typename BoundOf, typename Join, typename Take>
    void lookAtGroup(std::int32_t index, BoundOf& boundOf, Join& join, Take& take, Choice& best);
    template <typename Take>
    void look(std::int32_t index, Take& take, Choice& best);

    std::vector<Part> blocks_, groups_;
    std::vector<double> lows_;         // bounds of groups_, while a choice is made
    std::vector<std::int64_t> order_;  // per storage: which entry into the pool was its last
    std::int64_t entries_ = 0;
};

template <typename Bounds>
template <typename Take>
void PoolBlocks<Bounds>::look(std::int32_t index, Take& take, Choice& best) {
    Part& block = blocks_[index];
    block.bounds = Bounds();
    block.known = true;
    forEachBit(block.members, [&](int member) {
        const core::StorageIndex s = index * 64 + member;
        const double score = take(s, block.bounds, best.score);
        if (score < best.score || best.storage == core::kNone ||
            (score == best.score && order_[s] > order_[best.storage]))
            best = {s, score};
    });
}

/// At the parts that are not known, then at the one with the lowest bound, then at what is left.
template <typename Bounds>
template <typename Each, typename BoundOf, typename Look>
void PoolBlocks<Bounds>::lookInTurn(const Part* parts, double* lows, Each each, BoundOf& boundOf,
                                    const Choice& best, Look look) {
    std::int32_t next = -1;  // the lowest
    each([&](std::int32_t i) {
        lows[i] = parts[i].known ? boundOf(parts[i].bounds) : kLooked;
        if (!parts[i].known)
            look(i);
        else if (next < 0 || lows[i] < lows[next])
            next = i;
    });
    const auto lookUnlessAbove = [&](std::int32_t i) {
        if (lows[i] <= best.score) look(i);
    };
    if (next >= 0) lookUnlessAbove(next);
    each([&](std::int32_t i) {
        if (i != next) lookUnlessAbove(i);
    });
}

template <typename Bounds>
template <typename BoundOf, typename Join, typename Take>
void PoolBlocks<Bounds>::lookAtGroup(std::int32_t index, BoundOf& boundOf, Join& join, Take& take,
                                     Choice& best) {
    Part& group = groups_[index];
    const auto each = [&](auto visit) { forEachBit(group.members, visit); };
    double lows[64];
    lookInTurn(&blocks_[index * 64], lows, each, boundOf, best,
               [&](std::int32_t i) { look(index * 64 + i, take, best); });
    group.bounds = Bounds();
    group.known = true;
    each([&](std::int32_t i) { join(group.bounds, blocks_[index * 64 + i].bounds); });
}

template <typename Bounds>
template <typename BoundOf, typename Join, typename Take>
typename PoolBlocks<Bounds>::Choice PoolBlocks<Bounds>::lowest(BoundOf boundOf, Join join,
                                                               Take take) {
    Choice best;
    lows_.resize(groups_.size());
    const auto each = [&](auto visit) {
        for (std::size_t i = 0; i < groups_.size(); ++i)
            if (groups_[i].members != 0) visit(static_cast<std::int32_t>(i));
    };
    lookInTurn(groups_.data(), lows_.data(), each, boundOf, best,
               [&](std::int32_t i) { lookAtGroup(i, boundOf, join, take, best); });
    return best;
}

}  // namespace hw::planners

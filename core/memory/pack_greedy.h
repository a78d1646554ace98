// SPDX-License-Identifier: MIT
// Greedy packing: blocks are placed one by one, each into a gap that holds it for all of its life.
#pragma once

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "core/memory/packing_problem.h"

namespace hw::core {

using PackingOrder = std::vector<std::int32_t>;  // item indices, the first is placed first

enum class GapChoice : std::uint8_t { Tightest, Lowest };

/// Places items in a given order. Cost of an order: O(n^2) comparisons of neighbours in memory,
/// which for tens of thousands of items is cheaper than any tree.
class GreedyPacker {
public:
    explicit GreedyPacker(const PackingProblem& problem)
        : problem_(problem), isFixed_(problem.items.size(), false) {}

    /// Work of one order of n items: a comparison of neighbours in memory is cheap.
    static std::int64_t cost(std::int64_t n) { return n * n / 32 + n; }

    /// Puts an item where it shall stay, before any order is packed around it.
    void fix(std::int32_t item, std::int64_t offset);
    bool hasFixed() const { return !fixedItems_.empty(); }
    bool isFixed(std::int32_t item) const { return isFixed_[static_cast<std::size_t>(item)]; }

    /// Places `order` around what is fixed. Fills `offsets` (units, of all placed) and returns the
    /// arena (bytes). Gives up early, with a value of at least `stopAt`, once the arena reaches
    /// that.
    std::int64_t pack(const PackingOrder& order, GapChoice choice, std::int64_t stopAt,
                      std::vector<std::int64_t>& offsets);

private:
    struct Placed {
        std::int64_t offset, end;
        std::int32_t first, last;
    };
    void place(std::int32_t item, std::int64_t offset);
    std::int64_t gapFor(const PackingItem& item, GapChoice choice) const;

    const PackingProblem& problem_;
    std::vector<Placed> placed_, fixed_;  // by offset
    std::vector<std::pair<std::int32_t, std::int64_t>> fixedItems_;
    std::vector<bool> isFixed_;
};

/// Orders that do well on different kinds of problems: by size (ties: longest, first to begin or
/// last to end first), by area (size times life), by life, by begin and by end; and first what
/// stays long where the load is close to its peak. Blocks of few different sizes, as in training
/// steps, do best by size and end in the lowest gap. At least one item is needed.
std::vector<PackingOrder> packingOrders(const PackingProblem& problem);

/// The best of several greedy packings, and how it came about.
struct GreedyPacking {
    std::int64_t arena = std::numeric_limits<std::int64_t>::max();  // bytes
    std::vector<std::int64_t> offsets;                              // units
    PackingOrder order;                                             // of all that was not fixed
    GapChoice choice = GapChoice::Tightest;
};

/// Packs what `packer` has not fixed in every order of packingOrders(), into the lowest and into
/// the tightest gaps; of a large problem in the order of time and in as many of the others as take
/// some tens of seconds. Stops at an arena of at most `target` bytes.
GreedyPacking packInOrders(const PackingProblem& problem, GreedyPacker& packer,
                           std::int64_t target);

/// Moves blocks that stick out above the target to the front of the order and packs again, as long
/// as the meter allows ("squeaky wheel" optimization: Joslin and Clements, JAIR 10, 1999). Starts
/// from the order of `best`, improves it, and stops at an arena of at most `target` bytes.
void improveOrder(const PackingProblem& problem, GreedyPacker& packer, std::int64_t target,
                  WorkMeter& meter, GreedyPacking& best);

}  // namespace hw::core

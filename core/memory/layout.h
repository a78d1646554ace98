// SPDX-License-Identifier: MIT
// Address layout: one offset in one arena for every allocation of a schedule.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/units.h"

namespace hw::core {

/// A block of bytes that lives during [begin, end) on any integer time axis.
struct Block {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    Bytes size;
};

struct Packing {
    Bytes arena;       // highest end of a block
    Bytes lowerBound;  // highest sum of sizes that live at one instant, no packing is below
    std::vector<Bytes> offsets;  // one per block
};

/// Packs blocks so that no two that live at the same time overlap; offsets are multiples of
/// `alignment`. Greedy over several orders with best fit, the lowest arena wins; deterministic.
/// Cost: O(n * overlaps) per order.
Packing packBlocks(const std::vector<Block>& blocks, Bytes alignment);

}  // namespace hw::core

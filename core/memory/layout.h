// SPDX-License-Identifier: MIT
// Address layout: one offset in one arena for every block of bytes with a known lifetime.
//
// This is dynamic storage allocation with all lifetimes known beforehand. packBlocks() first places
// greedily in several orders, then improves the order, then searches exhaustively; each stage is
// left out when an earlier one reached the goal.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "core/base/units.h"

namespace hw::core {

/// A block of bytes that lives during [begin, end) on any integer time axis.
struct Block {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    Bytes size;

    /// Blocks of no bytes or no life need no place.
    bool takesSpace() const { return size > Bytes(0) && begin < end; }
    bool livesWith(const Block& other) const { return begin < other.end && other.begin < end; }
};

inline constexpr Bytes kArenaAlignment{64};  // of the executor's arena on a CPU; 512 on CUDA

struct PackOptions {
    /// Work of a few seconds on hard problems; easy ones stop long before.
    static constexpr std::int64_t kDefaultWork = 50'000'000;

    Bytes alignment = kArenaAlignment;  // offsets are multiples of it; at least 1
    std::optional<Bytes> capacity;  // stop as soon as the arena is no higher; without: the optimum
    /// Blocks looked at, over all stages; 0 leaves only the first greedy stage. The result depends
    /// on it, never on the speed of the machine, unless a time limit is given.
    std::int64_t workLimit = kDefaultWork;
    std::optional<double> timeLimitSeconds;
    std::function<bool()> cancelled;  // may be empty; asked often
};

struct Packing {
    Bytes arena;       // highest end of a block
    Bytes lowerBound;  // no packing is below: highest live sum, or more where a search proved it
    bool optimal = false;        // arena == lowerBound
    std::vector<Bytes> offsets;  // one per block
};

/// Packs blocks so that no two that live at the same time overlap. Sizes and ends of offsets must
/// fit into 63 bits. Deterministic for a work limit.
Packing packBlocks(const std::vector<Block>& blocks, const PackOptions& options);

/// The same with the default work limit.
Packing packBlocks(const std::vector<Block>& blocks, Bytes alignment);

/// Highest sum of sizes that live at one instant, unaligned.
Bytes highestLoad(const std::vector<Block>& blocks);

}  // namespace hw::core

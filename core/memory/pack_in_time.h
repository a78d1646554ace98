// SPDX-License-Identifier: MIT
// Packing as an allocator would: in the order of time, for problems too large for orders by size.
#pragma once

#include "core/memory/pack_greedy.h"

namespace hw::core {

/// Places what begins first first, into the tightest gap that is free at that moment; likewise from
/// the end; the better of both. O(n log n), where any other order takes O(n^2).
GreedyPacking packInTime(const PackingProblem& problem);

}  // namespace hw::core

// SPDX-License-Identifier: MIT
// Allocation signatures: what an op asks its allocator for, in order. They are the same in every
// schedule and on recomputation, so that those of one unplanned run predict any plan's addresses.
#pragma once

#include <optional>
#include <vector>

#include "core/base/units.h"

namespace hw::core {

/// One allocation of an op, in the order in which the op makes them.
struct Allocation {
    Bytes bytes;
    std::optional<int> output;      // index of the result that lives in it; none: workspace
    int beginEvent = 0;             // allocations and frees inside the op are numbered from 0
    std::optional<int> endEvent;    // none: it outlives the op
    const void* address = nullptr;  // while it is recorded; not stored
};

struct OpSignature {
    std::vector<Allocation> allocations;
    int events = 0;  // allocations and frees of them inside the op
};

/// One an op of a graph; empty when none were recorded.
using Signatures = std::vector<OpSignature>;

}  // namespace hw::core

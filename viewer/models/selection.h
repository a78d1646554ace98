// SPDX-License-Identifier: GPL-3.0-or-later
// What is selected, and what can be.
#pragma once

#include <optional>

#include "core/base/units.h"
#include "core/graph/indices.h"

namespace hw::viewer {

/// A block of memory as it was recorded.
struct BlockFacts {
    std::int64_t storage = -1;  // its id in the session; -1: not known
    std::int64_t address = 0;
    core::Bytes bytes;
    core::Nanoseconds begin, end;  // on the curve's axis
    friend bool operator==(const BlockFacts&, const BlockFacts&) = default;
};

/// What is marked in every view. A tensor brings its layer and the op that made it along, a layer
/// its first op, an op its layer. A block is one whose tensor is not loaded.
struct Selection {
    enum class Kind { None, Op, Tensor, Layer, Block } kind = Kind::None;
    core::OpIndex op = core::kNone;
    core::StorageIndex storage = core::kNone;
    core::LayerIndex layer = core::kNone;
    std::optional<BlockFacts> block{};
    friend bool operator==(const Selection&, const Selection&) = default;
};

/// What can be selected, by its index in the graph.
struct Target {
    Selection::Kind kind = Selection::Kind::None;
    std::int32_t index = core::kNone;
    explicit operator bool() const { return kind != Selection::Kind::None; }
    friend bool operator==(const Target&, const Target&) = default;
};

/// A stretch of the recorded step.
struct TimeRange {
    core::Nanoseconds begin, end;
    friend bool operator==(const TimeRange&, const TimeRange&) = default;
};

}  // namespace hw::viewer

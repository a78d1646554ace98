// SPDX-License-Identifier: MIT
// The address layout of a schedule: from allocation signatures to blocks, and to one offset each.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/graph/training_graph.h"
#include "core/memory/layout.h"
#include "core/memory/schedule_blocks.h"
#include "core/plan/plan.h"
#include "executor/memory_tracker.h"

namespace hw::executor {

using core::kArenaAlignment;

/// Where everything of a schedule lies, ready for the tracker.
struct Arena {
    core::Bytes bytes;
    core::Bytes lowerBound;                       // no layout of these blocks is smaller
    std::vector<std::vector<ArenaSlot>> actions;  // [action][k-th allocation]
    std::map<core::StorageIndex, ArenaSlot> constants;
};

/// Packs every allocation of `schedule` (valid for `graph`). `signatures` has one entry an op.
Arena packSchedule(const core::TrainingGraph& graph, const core::Schedule& schedule,
                   const std::vector<OpSignature>& signatures);

/// The arena that a plan brings along. Errors: BadInput when the layout does not have one offset
/// per allocation, or an offset lies outside of it.
core::Result<Arena> arenaFromLayout(const core::AddressLayout& layout,
                                    const core::TrainingGraph& graph,
                                    const core::Schedule& schedule,
                                    const std::vector<OpSignature>& signatures);

using core::Arrival;
using core::constantArrivals;

}  // namespace hw::executor

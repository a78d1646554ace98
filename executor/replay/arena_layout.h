// SPDX-License-Identifier: MIT
// The arena of a schedule: one slot for each allocation, ready for the tracker.
#pragma once

#include <map>
#include <vector>

#include "core/base/result.h"
#include "core/graph/training_graph.h"
#include "core/memory/layout.h"
#include "core/memory/schedule_blocks.h"
#include "core/plan/plan.h"
#include "executor/replay/memory_tracker.h"

namespace hw::executor {

/// Where everything of a schedule lies.
struct Arena {
    core::Bytes bytes;
    core::Bytes lowerBound;                       // no layout of these blocks is smaller
    std::vector<std::vector<ArenaSlot>> actions;  // [action][k-th allocation]
    std::map<core::StorageIndex, ArenaSlot> constants;
};

/// Packs every allocation of `schedule` (valid for `graph`), at multiples of `alignment`.
/// `signatures` has one entry an op.
Arena packSchedule(const core::TrainingGraph& graph, const core::Schedule& schedule,
                   const core::Signatures& signatures,
                   core::Bytes alignment = core::kArenaAlignment);

/// The arena that a plan brings along. Errors: BadInput when the layout does not have one offset
/// per allocation; Verification, with the op, when an offset lies outside of the arena or two
/// blocks overlap.
core::Result<Arena> arenaFromLayout(const core::AddressLayout& layout,
                                    const core::TrainingGraph& graph,
                                    const core::Schedule& schedule,
                                    const core::Signatures& signatures,
                                    core::Bytes alignment = core::kArenaAlignment);

}  // namespace hw::executor

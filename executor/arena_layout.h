// SPDX-License-Identifier: MIT
// The address layout of a schedule: from allocation signatures to blocks, and to one offset each.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/graph/training_graph.h"
#include "core/memory/layout.h"
#include "core/plan/plan.h"
#include "executor/memory_tracker.h"

namespace hw::executor {

inline constexpr core::Bytes kArenaAlignment{64};

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

/// Number of fixed ops (those that keep the captured order) that come before each constant.
struct Arrival {
    std::int32_t fixedOpsBefore = 0;
    core::StorageIndex storage = core::kNone;
};
std::vector<Arrival> constantArrivals(const core::TrainingGraph& graph);

}  // namespace hw::executor

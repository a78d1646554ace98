// SPDX-License-Identifier: MIT
// From a schedule to blocks: every allocation with its size and lifetime.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/graph/training_graph.h"
#include "core/memory/layout.h"
#include "core/memory/signature.h"
#include "core/plan/plan.h"

namespace hw::core {

/// What a block is for.
struct BlockOwner {
    StorageIndex storage = kNone;  // kNone: workspace
    OpIndex op = kNone;            // that made it; kNone: it is a constant's
};

/// Blocks of a schedule. With recorded signatures, each (re)computed op makes the allocations of
/// its signature; those of results that are resident already, or not wanted, live for the op only
/// (rule 4). In its own form, without signatures, it allocates all its new storages in result
/// order, storages of no bytes too, then its workspace where that is not 0. An encoding allocates
/// the encoded form, a decoding the storage.
struct ScheduleBlocks {
    std::vector<Block> blocks;
    std::vector<BlockOwner> owners;                 // by block
    std::map<StorageIndex, std::size_t> constants;  // block of each
    std::vector<std::size_t> firstOfAction;         // and one more: the end of the last
    /// First instant of each action, and one more. At its last one, before the next action's first,
    /// there is what the action leaves behind.
    std::vector<std::int64_t> beginOfAction;
    std::vector<std::size_t> placedIn;  // by block: itself, or the block that it was merged into
    std::size_t merged = 0;             // outputs that took the place of an input (inPlace only)

    std::size_t allocations(std::size_t action) const {
        return firstOfAction[action + 1] - firstOfAction[action];
    }
};

struct BlockOptions {
    /// One an op, or null or empty: the schedule's own form. Must outlive the call.
    const Signatures* signatures = nullptr;
    /// An element-wise op writes its output over an input that dies with it (Chen et al. 2016,
    /// section 3, "inplace operation"): both become one block. A what-if figure: an executor
    /// replays ops as captured and does not do this. Merged are ops known by name to be
    /// element-wise, outside of recorded in-place variants, whose only output has the bytes of an
    /// input that is read through the tensor it was made with and is freed right after.
    bool inPlace = false;
};

/// `schedule` must be valid for `graph` (see evaluate()). With no options the highest sum of live
/// blocks is the judge's peak; so it is with signatures and the workspaces measured with them.
ScheduleBlocks scheduleBlocks(const TrainingGraph& graph, const Schedule& schedule,
                              const BlockOptions& options = {});

/// "c12" for constant storage 12, "a34.0" for allocation 0 of schedule entry 34; by block.
std::vector<std::string> blockNames(const ScheduleBlocks& blocks);

}  // namespace hw::core

// SPDX-License-Identifier: MIT
// The address layout of a schedule: the packing of its blocks in the form of a plan file, and the
// check of a layout that a plan file brings along.
#pragma once

#include <vector>

#include "core/base/result.h"
#include "core/graph/training_graph.h"
#include "core/memory/layout.h"
#include "core/memory/schedule_blocks.h"
#include "core/plan/plan.h"

namespace hw::core {

/// The packing of these blocks in the form of a plan file. The blocks must not be merged.
AddressLayout addressLayout(const ScheduleBlocks& blocks, const Packing& packing);

/// Blocks, packing and form in one.
AddressLayout layOut(const TrainingGraph& graph, const Schedule& schedule,
                     const PackOptions& options, const Signatures* signatures = nullptr);

/// No two blocks that live together overlap, all lie in the arena at multiples of `alignment`, and
/// there is one offset an allocation. Errors: Verification naming the two blocks and their ops, or
/// BadInput when the form does not match the schedule.
Status verifyLayout(const AddressLayout& layout, const TrainingGraph& graph,
                    const Schedule& schedule, Bytes alignment,
                    const Signatures* signatures = nullptr);

struct Fragmentation {
    Bytes livePeak;           // highest sum of sizes that live at one instant, unaligned
    Bytes largestHoleAtPeak;  // longest free range below the arena's top at the first such instant
    double overhead = 0;      // arena / livePeak - 1
};
Fragmentation fragmentation(const std::vector<Block>& blocks, const Packing& packing);

}  // namespace hw::core

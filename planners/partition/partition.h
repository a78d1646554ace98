// SPDX-License-Identifier: MIT
// What a compiler keeps of a region's forward for its backward.
//
// A compiled region is one joint graph of a forward and a backward, which the compiler cuts in two
// (AOTAutograd: torch/_functorch/partitioners.py). All that a plan decides of it is which values
// are kept across the cut: what the backward lacks it makes again once, where it first wants it.
// The compiler orders kernels and fuses them by itself.
#pragma once

#include <optional>
#include <vector>

#include "core/base/result.h"
#include "core/graph/training_graph.h"
#include "planners/planner.h"

namespace hw::planners {

/// A region as the compiler has traced it.
struct JointRegion {
    core::TrainingGraph graph;             // every value with the bytes of a buffer of its own
    core::OpIndex backward = core::kNone;  // its first op; all before it are the forward's
    std::vector<bool> fusible;             // by op: the compiler fuses it with its neighbours
    std::vector<core::StorageIndex> kept;  // what the compiler would keep by itself
};

/// What the compiler makes of a choice.
struct PartitionFigures {
    core::Bytes peak;  // of both parts, as buffers: a value that only fused kernels see has none
    core::Bytes kept;  // across the cut, without what is there or kept in any case
    core::Nanoseconds time;
    /// Bytes above the budget, summed over the ops of both parts.
    std::int64_t overflow = 0;
};

struct PartitionRequest {
    core::Bytes budget;  // binds the peak
    double seconds = 5;  // of searching
    /// Of a region that is called again and again, or has others beside it: binds what is kept, in
    /// place of the peak.
    std::optional<core::Bytes> mostKept = {};
};

struct Partition {
    std::vector<core::StorageIndex>
        kept;  // across the cut, ascending; what is given not among them
    PartitionFigures figures;
    bool compilers = false;  // its own choice
    bool within = false;     // the budget; else it is the one with the lowest peak that was found
};

/// The figures of the choice to keep these storages of the forward's. What must not run twice
/// (Op::once), and what the forward gives back, is kept in any case. Errors: BadInput where the
/// region has no backward, or says of too few ops whether they are fused.
core::Result<PartitionFigures> partitionFigures(const JointRegion& region,
                                                const std::vector<core::StorageIndex>& kept,
                                                core::Bytes budget);

/// The compiler's own choice where that keeps the budget, else the fastest partition within it that
/// is found. Where there is none, the one with the lowest peak. Errors: BadInput as above.
core::Result<Partition> planPartition(const JointRegion& region, const PartitionRequest& request,
                                      const Progress& progress = {});

}  // namespace hw::planners

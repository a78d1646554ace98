// SPDX-License-Identifier: MIT
// A step that ran within a budget, as the live runtime has traced it (live/runtime/step_trace.h):
// the graph that a recording of it would give.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/graph/training_graph.h"
#include "core/session/rows.h"

namespace hw::live {

struct TracedStep {
    core::TrainingGraph graph;
    std::vector<core::TensorRow> tensors;
    core::Bytes untouched;  // live while it ran, though no op touches them
};

/// A region that torch.compile has traced, forward and backward (live/shim/joint_graph.py).
struct TracedRegion {
    TracedStep step;                       // untouched: what is live beside the region
    core::OpIndex backward = core::kNone;  // its first op; kNone: there is none
    std::vector<bool> fusible;             // by op: the compiler fuses it with its neighbours
    std::vector<core::StorageIndex>
        kept;                             // what the compiler would keep for the backward by itself
    std::optional<core::Bytes> mostKept;  // what it may keep, in place of a budget for all it takes
};

/// Errors: BadInput (no such trace, or one that does not add up, with where).
core::Result<TracedStep> readTracedStep(std::string_view json);
core::Result<TracedRegion> readTracedRegion(std::string_view json);

}  // namespace hw::live

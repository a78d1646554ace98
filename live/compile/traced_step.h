// SPDX-License-Identifier: MIT
// A step that ran within a budget, as the live runtime has traced it (live/runtime/step_trace.h):
// the graph that a recording of it would give.
#pragma once

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

/// Errors: BadInput (no such trace, or one that does not add up, with where).
core::Result<TracedStep> readTracedStep(std::string_view json);

}  // namespace hw::live

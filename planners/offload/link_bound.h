// SPDX-License-Identifier: MIT
// A lower bound of the time of plans that may recompute and offload.
#pragma once

#include "core/graph/training_graph.h"

namespace hw::planners {

/// No schedule within `budget` whose copies in host memory stay within `host` is faster. While the
/// op at the recorded peak runs, what later ops read is there, or is made again, or has been copied
/// out: the first binds the budget, the second costs at least what the relaxation at that op says
/// (cut_relaxation.h; on large steps the fractional knapsack of knapsack_bound.h), and the link has
/// copied out at most what it can until then, which is later by no more than the whole overhead.
/// The least overhead for which these add up is found by bisection, from below.
core::Nanoseconds boundWithLink(const core::TrainingGraph& graph, core::Bytes budget,
                                core::Bytes host);

}  // namespace hw::planners

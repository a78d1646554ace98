// SPDX-License-Identifier: MIT
// Plans of segments for steps that are too large for a matrix.
#pragma once

#include <functional>

#include "core/memory/evaluate.h"
#include "core/plan/plan.h"

namespace hw::planners {

/// Takes a schedule, and says what the judge does of it.
using Consider = std::function<core::Evaluation(core::Schedule)>;

/// Cuts the forward pass into segments where little crosses (Chen et al. 2016), for several lengths
/// of the segments. What crosses stays; of the rest, what takes the least time a byte to have again
/// is dropped first, as little as fits `budget`: sooner what is needed later, or not, and what it
/// is made from stays, or not. Every schedule is linear in ops. The same candidates each time, but
/// for `stop`, which it asks before each.
void fillSegments(const core::TrainingGraph& graph, core::Bytes budget, const Consider& consider,
                  const std::function<bool()>& stop);

}  // namespace hw::planners

// SPDX-License-Identifier: MIT
#pragma once

#include "core/graph/training_graph.h"
#include "core/plan/plan.h"

namespace hw::planners {

/// The same schedule with every storage freed right after the last action that needs it: frees move
/// forward in time, and what nobody frees and nothing needs at the end gets one. Neither the peak
/// nor the time can rise. `schedule` must be valid and without codecs. O(actions).
core::Schedule freeEarly(const core::TrainingGraph& graph, core::Schedule schedule);

}  // namespace hw::planners

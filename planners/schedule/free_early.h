// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>

#include "core/graph/training_graph.h"
#include "core/plan/plan.h"

namespace hw::planners {

/// The same schedule with every storage freed right after the last action that needs it: frees move
/// forward in time, and what is never freed and not needed at the end gets one. Neither the peak
/// nor the time can rise. No free moves across the action `held`: what was resident during it still
/// is. `schedule` must be valid and without codecs. O(actions).
core::Schedule freeEarly(const core::TrainingGraph& graph, core::Schedule schedule,
                         std::optional<std::size_t> held = {});

}  // namespace hw::planners

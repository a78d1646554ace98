// SPDX-License-Identifier: MIT
// Plans drop what ops have made that are not deterministic (core/graph/nondeterministic_ops.h).
// Recomputed it has other bytes, as it would have in another run of the program; it is better kept.
#pragma once

#include <optional>

#include "core/base/units.h"
#include "core/graph/training_graph.h"
#include "core/plan/plan.h"

namespace hw::core {

/// The valid `schedule` without the drops of such storages, as long as its peak stays within
/// `budget`: in the order in which they are made, each one that there is room for. The time does
/// not rise. None: no drop can be left out. `onGpu`: the step's ops run on one.
std::optional<Schedule> keepNondeterministic(const TrainingGraph& graph, const Schedule& schedule,
                                             Bytes budget, bool onGpu);

}  // namespace hw::core

// SPDX-License-Identifier: MIT
// What a schedule makes again only so that the step ends as the program has it: after the last op
// it would come late in a program that runs, whose optimizer's temporaries are still there.
#pragma once

#include "core/graph/training_graph.h"
#include "core/plan/plan.h"

namespace hw::core {

/// The valid `schedule` with what follows its last op made again as soon as nothing else is made
/// again or encoded any more, what it is made from is there, and its bytes can stay below the
/// peak. The schedule itself where there is nothing of that kind, or no earlier place. The time
/// does not change, and the peak does not rise.
Schedule restoreEarly(const TrainingGraph& graph, const Schedule& schedule);

}  // namespace hw::core

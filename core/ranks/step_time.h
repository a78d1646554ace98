// SPDX-License-Identifier: MIT
// How long a step of several ranks takes that wait for each other.
#pragma once

#include <vector>

#include "core/graph/training_graph.h"
#include "core/plan/plan.h"
#include "core/session/exchanges.h"

namespace hw::core {

/// One rank's part of a step. What is pointed to outlives the call.
struct RankStep {
    int rank = 0;
    const TrainingGraph* graph = nullptr;
    const Schedule* schedule = nullptr;  // a valid one
    const std::vector<Exchange>* exchanges = nullptr;
};

struct RankTime {
    Nanoseconds end;      // since the step began on all ranks
    Nanoseconds waiting;  // for others
};

struct StepTime {
    Nanoseconds time;             // until the last rank has ended
    std::vector<RankTime> ranks;  // as they were given
    std::size_t decides = 0;      // the rank that waits least, the last to end among equals
    bool matched = true;          // false: an exchange has no counterpart; it is not waited for
};

/// Each rank runs its actions one after the other, for as long as the judge has them take. The n-th
/// message of a rank to another with a tag is the n-th that this one receives from it; the n-th
/// meeting of a group is everybody's. What they bring is there as soon as all have come to it, and
/// waited for where the step first works on it, else before the optimizer. An op that waits for a
/// collective takes no time of its own. Ranks that have messages count as in their group.
StepTime simulateStep(const std::vector<RankStep>& ranks);

}  // namespace hw::core

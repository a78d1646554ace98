// SPDX-License-Identifier: MIT
// The last step of each rank of a session, ready to be simulated and planned.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/memory/evaluate.h"
#include "core/ranks/step_time.h"
#include "core/session/session.h"

namespace hw::core {

struct LoadedRank {
    int rank = 0;
    std::string host;
    TrainingGraph graph;
    std::vector<Exchange> exchanges;
    Schedule captured;    // as it was recorded
    Evaluation baseline;  // of that
};

/// By rank; those without a step are left out. Errors: BadInput.
Result<std::vector<LoadedRank>> loadRanks(const Session& session,
                                          std::optional<CostSet> costs = std::nullopt);

/// How long the step takes as it was recorded.
StepTime recordedTime(const std::vector<LoadedRank>& ranks);

}  // namespace hw::core

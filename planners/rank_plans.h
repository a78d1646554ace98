// SPDX-License-Identifier: MIT
// Plans for all ranks of a step: what `plan --ranks all` and `sweep --ranks all` run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/ranks/rank_steps.h"
#include "planners/sweep.h"

namespace hw::planners {

/// One planner for all ranks.
struct RankPoint {
    std::string planner;
    std::vector<PlanRequest> requests;  // of each rank
};

struct RankOutcome {
    Outcome outcome;
    std::optional<int> like;  // the rank whose plan it has

    bool planned() const { return outcome.status == PlanStatus::Ok; }
};

/// By point, then by rank as given. A rank with the graph of another takes its plan where that
/// keeps the budget here, too: times and workspaces are the rank's own. The others are planned in
/// one sweep, over all points. Errors: those of planSweep.
core::Result<std::vector<std::vector<RankOutcome>>> planRanks(
    const std::vector<core::LoadedRank>& ranks, const std::vector<RankPoint>& points, unsigned jobs,
    const Progress& progress = {});

/// Plans ranks that wait for others again, each within the least memory that is found to leave the
/// step's time as it is but for a thousandth. `point`: what `outcomes`, one plan for each rank, was
/// planned from; these get the new plans. By rank, the bytes that its peak is lower. Errors: those
/// of planWith().
core::Result<std::vector<core::Bytes>> spareWhileWaiting(const std::vector<core::LoadedRank>& ranks,
                                                         const RankPoint& point,
                                                         std::vector<RankOutcome>& outcomes,
                                                         const Progress& progress = {});

/// How long the step takes under plans, one for each rank.
core::StepTime plannedTime(const std::vector<core::LoadedRank>& ranks,
                           const std::vector<RankOutcome>& outcomes);

}  // namespace hw::planners

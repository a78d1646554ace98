// SPDX-License-Identifier: GPL-3.0-or-later
// `highwater plan --ranks all`: a plan for each rank, within one budget.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/cli.h"
#include "planners/rank_plans.h"

namespace hw::app {

struct RanksToPlan {
    std::string file, planner, folder;
    std::optional<core::CostSet> costs;
    planners::PlanRequest request;  // but for its budget
    /// What the budget is, from a baseline peak.
    std::function<core::Result<core::Bytes>(core::Bytes)> budget;
    bool each = false;  // from the rank's own peak; else one budget, from the highest of any
    bool spare =
        false;  // ranks that wait for others recompute more, as far as no rank waits longer
};

/// The last step of each rank; ranks with the same graph share a plan where it keeps the budget in
/// both. Writes rankN.plan.json for each, into a folder that is made where there is none, or
/// nothing where a rank has no plan. Tells how long the step takes, see core/ranks/step_time.h. The
/// exit code.
int planRanks(const RanksToPlan& what, const Common& common);

/// The last step of each rank of a file. Errors: BadInput, also where there is none.
core::Result<std::vector<core::LoadedRank>> openRanks(const std::string& file,
                                                      std::optional<core::CostSet> costs);

/// Of any rank's baseline.
core::Bytes highestPeak(const std::vector<core::LoadedRank>& ranks);

Json rankOutcomeJson(const core::LoadedRank& rank, const planners::RankOutcome& planned);

}  // namespace hw::app

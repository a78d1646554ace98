// SPDX-License-Identifier: MIT
// To a plan within a small budget from plans that are cheap but too large.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "planners/schedule/work_budget.h"
#include "planners/search/annealing.h"

namespace hw::planners {

/// Anneals (annealing.h) at a budget that shrinks step by step from the peak
/// of `start` to the judge's own, then at this one. Temperatures and steps depend on `run`, so that
/// many runs end in many places. Leaves the judge at its own budget and `annealing` with the best
/// that fits.
///
/// @param ended given the moves so far and what they may be, says 1 or more when all is done
void continueBudget(const core::RetentionMatrix& start, std::size_t run, core::StageJudge& judge,
                    Annealing& annealing, const WorkBudget& all,
                    const std::function<double(std::int64_t moves, const WorkBudget&)>& ended);

}  // namespace hw::planners

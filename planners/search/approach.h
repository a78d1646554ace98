// SPDX-License-Identifier: MIT
// Ways to a plan within a small budget from plans that are cheap but too large.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "planners/search/allowance.h"
#include "planners/search/annealing.h"
#include "planners/search/recombination.h"

namespace hw::planners {

/// Budget continuation: anneals (annealing.h) at a budget that shrinks step by step from the peak
/// of `start` to the judge's own, then there. Temperatures and steps depend on `run`, so that many
/// runs end in many places. Leaves the judge at its own budget and `annealing` with the best that
/// fits.
///
/// @param ended given the moves so far and what they may be, says 1 or more when all is done
void approach(const Table& start, std::size_t run, core::StageJudge& judge, Annealing& annealing,
              const Allowance& all,
              const std::function<double(std::int64_t moves, const Allowance&)>& ended);

}  // namespace hw::planners

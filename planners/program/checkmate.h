// SPDX-License-Identifier: MIT
#pragma once

#include "planners/planner.h"

namespace hw::planners {

/// Jain et al., "Checkmate: Breaking the Memory Wall with Optimal Tensor Rematerialization",
/// MLSys 2020: the integer program of section 4 (checkmate_program.h) on small graphs, the
/// two-phase rounding of its linear relaxation (section 5) on larger ones.
///
/// Small means up to some thousands of variables, about a hundred ops. There the plan is the
/// cheapest of its form when the solver ends in time, otherwise the best that it found; unlike the
/// paper's, the solver begins with a greedy plan (lookahead.h) where one fits.
///
/// On larger graphs the relaxation is solved for a budget lower by the paper's allowance (0.1), S
/// is rounded, and the least recomputation follows from it. Departures: besides the threshold 1/2,
/// others and random rounding (from the seed) are tried, what is dropped may also be rebuilt as
/// late as possible, and the cheapest plan within the budget counts. Where none fits, the allowance
/// grows. Stages are merged into groups and small storages always kept, down to a number of
/// variables that is solved in seconds; finer groups follow while there is time. Beyond some ten
/// thousand ops the answer is a reason.
///
/// The program covers plans of one form; a bound must hold for all of them, so it comes from cuts
/// (cut_relaxation.h): one at every stage of a small graph, one at the highest of a larger one.
///
/// Default time limit: 10 seconds. With a work limit (nodes of branch and bound) the result is the
/// same for the same seed. Without the solver (HiGHS) there is no plan.
class Checkmate : public Planner {
public:
    static PlannerInfo info();
    Proposal plan(const core::TrainingGraph& graph, const PlanRequest& request,
                  const Progress& progress) const override;
};

}  // namespace hw::planners

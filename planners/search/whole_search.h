// SPDX-License-Identifier: MIT
// The search of the planner `highwater` on a graph as a whole.
#pragma once

#include "planners/planner.h"

namespace hw::planners {

/// For a budget between the floor and what keeping everything takes.
///
/// 1. First plans: segments that keep what the relaxation of one cut says (segment_plans.h), greedy
///    ones with the future known (lookahead.h), in three flavours, and Chen's segments (chen.h),
///    which keep small budgets at which a greedy walk would thrash.
/// 2. Cut relaxations (cut_relaxation.h): one cut at the highest stage of the unconstrained plan,
///    then further cuts where the plan that they suggest still exceeds the budget. Each gives a
///    lower bound on the time of any plan, and the items to keep; the best bound counts.
/// 3. Simulated annealing (annealing.h) on the incremental judge, on two threads: first at
///    budgets that shrink to the wanted one, again and again (budget_continuation.h), then short
///    rounds put together the best of all that was found (recombination.h) and anneal it further.
Proposal searchWhole(const core::TrainingGraph& graph, const PlanRequest& request,
                     const Progress& progress);

}  // namespace hw::planners

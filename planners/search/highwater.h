// SPDX-License-Identifier: MIT
#pragma once

#include "planners/planner.h"

namespace hw::planners {

/// Our own planner: near-optimal plans with a proven bound, within seconds.
///
/// 1. First plans: greedy ones with the future known (lookahead.h), in three flavours, and Chen's
///    segments (chen.h), which keep small budgets at which a greedy walk would thrash.
/// 2. Cut relaxations (cut_relaxation.h): one cut at the highest stage of the unconstrained plan,
///    then further cuts where the plan that they suggest still exceeds the budget. Each gives a
///    lower bound on the time of any plan, and the items to keep; the best bound counts.
/// 3. Simulated annealing (annealing.h) on the incremental judge, on two threads: first at
///    budgets that shrink to the wanted one, again and again (budget_continuation.h), then short
///    rounds put together the best of all that was found (recombination.h) and anneal it further.
///
/// Anytime: more time gives better plans. With a work limit (annealing moves in thousands) instead
/// of a time limit the result is the same for the same seed. Without the solver (HiGHS) there is no
/// bound, and step 2 is left out. The default is 10 seconds. The option `search=first` stops at the
/// first greedy plan that fits: tens of milliseconds for thousands of ops, and no bound.
class HighwaterPlanner : public Planner {
public:
    static PlannerInfo info();
    Proposal plan(const core::TrainingGraph& graph, const PlanRequest& request,
                  const Progress& progress) const override;
};

}  // namespace hw::planners

// SPDX-License-Identifier: MIT
#pragma once

#include "planners/planner.h"

namespace hw::planners {

/// Our own planner: near-optimal plans with a proven bound, within seconds.
///
/// Graphs are searched as a whole (whole_search.h); of large steps of several passes, forward and
/// backward, each pass is, and equal ones once (windowed_search.h).
///
/// Anytime: more time gives better plans. With a work limit (annealing moves in thousands) instead
/// of a time limit the result is the same for the same seed. Without the solver (HiGHS) there is no
/// bound. The default is 10 seconds. The option `search=first` stops at the
/// first greedy plan that fits: tens of milliseconds for thousands of ops, and no bound.
class HighwaterPlanner : public Planner {
public:
    static PlannerInfo info();
    Proposal plan(const core::TrainingGraph& graph, const PlanRequest& request,
                  const Progress& progress) const override;
};

}  // namespace hw::planners

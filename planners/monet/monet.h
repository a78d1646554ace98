// SPDX-License-Identifier: MIT
#pragma once

#include "planners/planner.h"

namespace hw::planners {

/// Shah, Wu, Mohan, Chidambaram, Krähenbühl, "Memory Optimization for Deep Networks" (MONeT, ICLR
/// 2021): what to recompute (section 4.1 and 4.2) and which implementation each op uses (4.3:
/// convolution algorithms, output-activated and intermediate-activated ops) are chosen together.
/// The choices come from the option `menu` (a file or its text, core/plan/implementations.h); the
/// option `use` restricts them (parseKinds()). Without a menu there is
/// only checkpointing, which is left to HighwaterPlanner.
///
/// Departures:
/// - The paper solves one integer program with the variables of every stage and implementation, for
///   hours. Here a retention matrix and the choice are searched in turn (search.h),
///   and the program is only the cut relaxation over the best case of every op (BestCase), which
///   gives the lower bound. The bound says how far the plan may be from the best, often loosely:
///   the best case has the fastest algorithm in the smallest workspace.
/// - The paper lets the recomputation of an op use another implementation than its first run. A
///   plan names one implementation an op.
/// - The paper's recomputation is one pass for each gradient op, in which a tensor is recomputed at
///   most once; the retention matrix has the same freedom and may keep what it recomputed for later
///   stages, which the paper's r also does.
/// - In-place ops are part of the menu; in the paper they are part of the network.
/// - Alternatives whose results differ are the menu's responsibility: the judge sees sizes, times
///   and reads.
///
/// Each kind of implementation is searched alone from the plan without any, then all together from
/// all of these plans, each time with the full work limit: with a work limit (annealing moves in
/// thousands, of one such search) a plan is never worse than that of each kind alone, and the same
/// for the same seed. A time limit (default 10 s) is divided among the searches.
class Monet : public Planner {
public:
    static PlannerInfo info();
    Proposal plan(const core::TrainingGraph& graph, const PlanRequest& request,
                  const Progress& progress) const override;
};

}  // namespace hw::planners

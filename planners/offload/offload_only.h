// SPDX-License-Identifier: MIT
#pragma once

#include "planners/planner.h"

namespace hw::planners {

/// The captured order, brought within the budget by copies to host memory and back, and by nothing
/// else: what offloading alone can do, as a reference (offload_schedule.h).
class OffloadOnly : public Planner {
public:
    static PlannerInfo info();
    Proposal plan(const core::TrainingGraph& graph, const PlanRequest& request,
                  const Progress& progress) const override;
};

}  // namespace hw::planners

// SPDX-License-Identifier: MIT
#pragma once

#include "planners/planner.h"

namespace hw::planners {

/// The baseline: captured order, every storage freed at its last external release.
class None : public Planner {
public:
    static PlannerInfo info();
    Proposal plan(const core::TrainingGraph& graph, const PlanRequest& request,
                  const Progress& progress) const override;
};

}  // namespace hw::planners

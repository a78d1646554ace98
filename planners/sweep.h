// SPDX-License-Identifier: MIT
// Many plans of one graph: what `sweep` and the benchmarks run.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "planners/plan_with.h"

namespace hw::planners {

struct SweepPoint {
    const core::TrainingGraph* graph = nullptr;  // outlives the call
    std::string planner;
    PlanRequest request;
};

struct SweepSettings {
    bool keepPlans = true;  // false drops the plans themselves
    unsigned jobs = 0;      // threads that plan beside each other; 0: as many as there are cores
};

/// Plans every point, in parallel where planners use one thread; outcomes in the order of the
/// points. A planner that warm-starts runs alone, on each graph from the smallest budget up, each
/// plan beginning with the one before it: its time never rises with the budget. `solveSeconds` of
/// what is planned in parallel is the processor time of its thread. `progress.report` is called
/// from one thread at a time. Errors: those of planWith, and none is lost: the first one ends the
/// sweep.
core::Result<std::vector<Outcome>> planSweep(const std::vector<SweepPoint>& points,
                                             const SweepSettings& settings,
                                             const Progress& progress = {});

}  // namespace hw::planners

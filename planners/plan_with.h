// SPDX-License-Identifier: MIT
// A planner's answer under the judge.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "planners/planner.h"

namespace hw::planners {

/// A proposal under the judge: what `plan`, `sweep` and the window show.
struct Outcome {
    std::string planner;
    PlanStatus status = PlanStatus::Infeasible;
    std::string reason;
    core::Bytes budget;
    core::Bytes peak;  // judge's; the runtime's own figure when there is no schedule
    core::Nanoseconds time;
    double overhead = 0;  // time / baseline time
    std::int64_t recomputedOps = 0;
    core::Bytes hostPeak, offloadedBytes;  // copies in host memory: at most, and all that were made
    core::Nanoseconds waited;              // for copies, out of `time`
    std::optional<core::Nanoseconds> lowerBound;
    std::optional<double> gap;   // (time - lower bound) / baseline time
    double solveSeconds = 0;     // wall time of planning
    double solveCpuSeconds = 0;  // processor time of the calling thread in it
    std::map<std::string, std::int64_t> figures;
    std::optional<core::Plan> plan;  // when status is Ok
};

/// Runs the planner, judges its schedule and fills the plan. Of a step that was recorded from a
/// program the constants stay until the program lets go of them, so that the program itself can be
/// trained under the plan (RebuildInfo::heldUntil); bounds are for such plans. A schedule that
/// breaks the budget or that the judge refuses never comes back as Ok. A plan that chose
/// implementations is judged on the graph under its choice, its overhead is over the captured
/// baseline, and it carries what it chose. Errors: Usage for an unknown planner, BadInput for a
/// menu of another graph.
core::Result<Outcome> planWith(std::string_view planner, const core::TrainingGraph& graph,
                               const PlanRequest& request, const Progress& progress = {});

}  // namespace hw::planners

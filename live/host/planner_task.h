// SPDX-License-Identifier: MIT
// What the planners of a program that trains within a budget have in common: a trace comes in, a
// plan for the running program goes out (live/host/planner_pool.h).
#pragma once

#include <cstdint>
#include <string>

#include "core/plan/plan.h"
#include "live/compile/traced_step.h"
#include "live/host/json.h"
#include "profiler/wire/format.h"

namespace hw::live {

/// What `train` asks of a planner.
struct PlannerTask {
    std::string trace;  // a file
    std::int64_t kind = 0;
    std::string folder;
    std::int64_t budget = 0;
};

core::Result<TracedStep> readTrace(const std::string& file);
/// Whole, or not at all. Errors: Internal.
core::Status writeWhole(const std::string& path, const std::string& text);
/// For steps of that kind; `found`: see FoundPlan. Errors: as liveProgram().
core::Status givePlan(const PlannerTask& asked, std::int64_t kind, profiler::wire::LiveMode mode,
                      const TracedStep& step, const core::Plan& plan, const Json& found);

/// Plans the step within the task's budget: soon a first plan, then one of a longer search. Errors:
/// NoPlan, and those of the planner.
core::Status planStep(const PlannerTask& asked, const std::string& planner);
/// Plans by input size (Mimose's collection phase, then its estimator): for the step, or for
/// earlier ones that waited. Errors: BadInput (no such trace), Internal (files).
core::Status planBySize(const PlannerTask& asked);
/// Plans what a region of torch.compile's keeps for its backward (live/compile/traced_step.h), and
/// leaves the answer, JSON, in the task's folder as KIND + kLiveAnswer: "kept" (storages of the
/// trace), "own" (the compiler's own choice), "within" (the budget), "peak_bytes", "kept_bytes",
/// the same as "own_…" of the compiler's choice, and "extra" (share of the region's time). Errors:
/// BadInput (no such trace), Internal (files).
core::Status planRegion(const PlannerTask& asked);

}  // namespace hw::live

// SPDX-License-Identifier: GPL-3.0-or-later
// What the planners of a program that trains within a budget have in common: a trace comes in, a
// plan for the running program goes out (profiler/attach/hand_over.h).
#pragma once

#include <cstdint>
#include <string>

#include "app/cli.h"
#include "core/plan/plan.h"
#include "profiler/recorder/step_trace.h"
#include "profiler/wire/format.h"

namespace hw::app {

/// What `train` asks of a planner.
struct TracedStep {
    std::string trace;  // a file
    std::int64_t kind = 0;
    std::string folder;
    std::int64_t budget = 0;
};

/// The command's options, and that it runs at the lowest priority.
void addTracedStep(CLI::App& command, TracedStep& step);
void yieldToAll();

core::Result<profiler::StepTrace> readTrace(const std::string& file);
/// Whole, or not at all. Errors: Internal.
core::Status writeWhole(const std::string& path, const std::string& text);
/// For steps of that kind; `found`: see profiler::FoundPlan. Errors: as liveProgram().
core::Status givePlan(const TracedStep& asked, std::int64_t kind, profiler::wire::LiveMode mode,
                      const profiler::StepTrace& step, const core::Plan& plan, const Json& found);

}  // namespace hw::app

// SPDX-License-Identifier: GPL-3.0-or-later
// What `train` and `apply` have in common on the command line: a plan becomes programs for the
// training process, and what its steps came to becomes a report.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/cli.h"
#include "profiler/attach/live_run.h"

namespace hw::app {

struct LivePlanFrom {
    std::string session, plan;
    std::optional<std::int64_t> step;  // that the plan is for; none: the last complete one
    bool fromStart = false;            // the first step, too, must have a plan within the budget
};

/// What the program is trained under.
struct LivePlan {
    std::vector<profiler::LiveProgram> programs;
    std::optional<core::Plan> plan;
    core::Bytes kept;  // what the plan would drop and nothing could restore
};

/// Errors: BadInput (a file, or a plan that a running program cannot be given), Verification (a
/// plan of another graph, or an invalid one), NoPlan (`fromStart`).
core::Result<LivePlan> prepareLive(const LivePlanFrom& from);

/// Writes the report to `file`, unless that is empty, and prints it: JSON to stdout or a table to
/// stderr.
void reportLive(const profiler::LiveSummary& summary, const LivePlan& plan,
                const std::optional<core::Bytes>& cap, const std::string& file,
                const Common& common);

}  // namespace hw::app

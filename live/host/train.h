// SPDX-License-Identifier: MIT
// Starts a training program under a plan (live/runtime), and tells what its steps came to.
#pragma once

#include <string>
#include <vector>

#include "core/base/units.h"
#include "live/host/live_run.h"
#include "live/host/planner_pool.h"
#include "live/host/plans.h"

namespace hw::live {

struct TrainOptions {
    std::vector<std::string> command;
    std::vector<LivePrograms> programs;  // none: nothing is dropped
    OtherKinds* others = nullptr;  // whose plans the first step waits for; null: all are there
    LiveLimits limits;
    bool childStdoutToStderr = false;
    StepListener onStep;    // none: not told
    bool curves = false;    // onStep gets them
    std::string agentPath;  // empty: beside the executable, then ../lib
};

/// Runs until the program has ended, or until release() or SIGUSR1: then the program goes on
/// without its plan from its next step on, and can be waited for. Errors: Usage (no program),
/// Target (it cannot be started, or no runtime can be compiled for its framework), Internal.
core::Result<LiveSummary> train(const TrainOptions& options, const profiler::Progress& progress);

}  // namespace hw::live

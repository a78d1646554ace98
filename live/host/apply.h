// SPDX-License-Identifier: MIT
// `highwater apply` and `release`: a plan, or DTR within a budget, acts in a training process that
// runs already.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <vector>

#include "live/host/live_run.h"

namespace hw::live {

struct ApplyOptions {
    pid_t pid = 0;
    std::vector<LivePrograms> programs;  // none: DTR acts, as `limits` have it
    LiveLimits limits;
    /// How long to wait for a moment at which the process can take the agent in.
    std::chrono::duration<double> patience{60};
    StepListener onStep;    // none: not told
    bool curves = false;    // onStep gets them
    std::string agentPath;  // empty: beside the executable, then ../lib
};

/// The plan or the budget acts from the process's next step on. Blocks until the process ends, or
/// until an interrupt or release() comes; then the process goes on unplanned from its next step on.
/// So it does when we are killed. Errors: Target (checkTarget(), another user's process, no runtime
/// for its framework, no safe moment in time, a plan that its framework cannot carry out),
/// Internal.
core::Result<LiveSummary> apply(const ApplyOptions& options, const profiler::Progress& progress);

/// Takes the plan out of a process, which goes on. Errors: Target when there is none in it, or
/// the process that brought it does not end.
core::Status release(pid_t pid);

}  // namespace hw::live

// SPDX-License-Identifier: MIT
// `highwater attach` and `detach`: records steps of a training process that runs already.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <vector>

#include "profiler/attach/recording.h"

namespace hw::profiler {

struct AttachOptions : CaptureOptions {
    pid_t pid = 0;
    std::vector<pid_t> others;  // recorded into the same session, as further ranks
    /// Ends the recording whatever it has; without a number of steps there is no other end.
    std::optional<std::chrono::duration<double>> duration;
    bool endless = false;  // `steps` was not given, but `duration` was
    /// How long to wait for a moment at which the process can take the agent in.
    std::chrono::duration<double> patience{60};
};

struct AttachSummary : RecordSummary {
    std::chrono::nanoseconds stopped{};  // how long the process stood still, at the longest
};

/// Blocks until all steps are recorded, the time is over, the process ends, or an interrupt or
/// detach() comes; then takes everything out of the process again. Errors: Usage, BadInput (the
/// output), Target (checkTarget(), no safe moment in time, no complete step).
core::Result<AttachSummary> attach(const AttachOptions& options, const Progress& progress);

/// Ends the recording of a process, which goes on. Errors: Target when it is not being recorded, or
/// its recorder does not end.
core::Status detach(pid_t pid);

}  // namespace hw::profiler

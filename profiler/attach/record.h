// SPDX-License-Identifier: MIT
// `highwater record`: runs a program under the agent and records its training steps.
#pragma once

#include "profiler/attach/recording.h"

namespace hw::profiler {

struct RecordOptions : CaptureOptions {
    std::vector<std::string> command;
    bool childStdoutToStderr = false;
};

/// Blocks until the program has ended. `highwater detach` ends the recording, not the program.
/// Errors: Usage (bad numbers, no command), BadInput (the output exists or cannot be written),
/// Target (cannot be started, not Python, no torch, no complete step).
core::Result<RecordSummary> record(const RecordOptions& options, const Progress& progress);

}  // namespace hw::profiler

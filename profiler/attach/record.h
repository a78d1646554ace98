// SPDX-License-Identifier: MIT
// `highwater record`: runs a program under the agent and records its training steps.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/base/result.h"

namespace hw::profiler {

struct RecordOptions {
    std::string output;  // session file; empty: PROGRAM-YYYYmmdd-HHMMSS.hws in the current folder
    int steps = 3;
    int warmup = 0;         // steps let through before the first recorded one
    int every = 1;          // record every n-th step
    bool contents = false;  // store the bytes of floating constants too
    std::vector<std::string> command;
    std::string agentPath;  // empty: beside the executable, then ../lib
    bool childStdoutToStderr = false;
};

struct RecordSummary {
    std::string session;
    std::int64_t steps = 0;
    std::int64_t ops = 0;      // of the last step
    std::int64_t dropped = 0;  // records that did not get into the session
    int exitStatus = 0;        // of the program; 128 + signal where one ended it
    std::vector<std::string> notes;
};

/// Blocks until the program has ended. `progress` gets one line at a time, from the calling thread.
/// Errors: Usage (bad numbers, no command), BadInput (the output exists or cannot be written),
/// Target (cannot be started, not Python, no torch, no complete step).
core::Result<RecordSummary> record(const RecordOptions& options,
                                   const std::function<void(const std::string&)>& progress);

}  // namespace hw::profiler

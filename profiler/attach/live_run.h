// SPDX-License-Identifier: MIT
// What training under a plan has in common, whether the program is started for it or runs already.
#pragma once

#include <string>
#include <vector>

#include "core/base/units.h"
#include "profiler/attach/recording.h"
#include "profiler/recorder/live_program.h"

namespace hw::profiler {

struct LiveSummary {
    std::vector<wire::LiveStepRecord> steps;
    std::vector<wire::LiveDivergenceRecord> divergences;
    int exitStatus = 0;  // of a program that was started; 128 + signal where one ended it
    std::vector<std::string> notes;
};

/// Writes the programs where the agent looks for them. Errors: Internal (no room).
core::Status handOver(const std::vector<LiveProgram>& programs, const std::string& path);
/// The configuration of a process with that framework. Errors: Target (no runtime can be compiled
/// for it).
core::Result<wire::ConfigRecord> liveConfig(const FrameworkFiles& framework,
                                            const std::string& programs, const Progress& progress);
/// What was reported so far.
LiveSummary liveSummary(const Server& server);

}  // namespace hw::profiler

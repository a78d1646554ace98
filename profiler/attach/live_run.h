// SPDX-License-Identifier: MIT
// What training under a plan has in common, whether the program is started for it or runs already.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/units.h"
#include "profiler/attach/hand_over.h"
#include "profiler/attach/launch.h"
#include "profiler/attach/recording.h"
#include "profiler/recorder/live_program.h"

namespace hw::profiler {

/// What acts in a process; the first program is tried first.
struct LivePrograms {
    std::optional<std::int64_t> rank;  // none: any process
    std::vector<LiveProgram> programs;
};

struct LiveProcess {
    std::int64_t rank = 0;
    std::vector<wire::LiveStepRecord> steps;
    std::vector<wire::LiveDivergenceRecord> divergences;
};

/// A step that has ended, as it is told of.
struct LiveStep {
    std::int64_t rank = 0;
    const wire::LiveStepRecord& figures;
    const wire::LiveDivergenceRecord* divergence = nullptr;  // null: it did not leave the plan
    const wire::LiveCurveRecord* curve = nullptr;            // null: there is none of it
};
using StepListener = std::function<void(const LiveStep&)>;

/// Tells of each step once.
class StepTeller {
public:
    StepTeller(const Server& server, StepListener listener)
        : server_(server), listener_(std::move(listener)) {}
    void tellNew();

private:
    const Server& server_;
    StepListener listener_;
    std::map<const Assembler*, std::size_t> told_;
};

struct LiveSummary {
    std::vector<LiveProcess> processes;  // that took steps, by rank; an empty one where none did
    int exitStatus = 0;            // of a program that was started; 128 + signal where one ended it
    std::optional<Child> running;  // a program that was started and goes on without its plan
    std::vector<std::string> notes;
    std::optional<FoundPlan> found;  // under a budget, the last plan that took over
    std::string shortage;  // the last allocation that was refused because of a budget; else empty
};

/// Writes the programs where the agent looks for them. Errors: Internal (no room).
core::Status handOver(const std::vector<LivePrograms>& programs, const std::string& path);
/// The configuration of a process with that framework. Errors: Target (no runtime can be compiled
/// for it).
core::Result<wire::ConfigRecord> liveConfig(const FrameworkFiles& framework,
                                            const std::string& programs, const Progress& progress);
/// What was reported so far.
LiveSummary liveSummary(const Server& server);

}  // namespace hw::profiler

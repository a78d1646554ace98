// SPDX-License-Identifier: MIT
// What training under a plan has in common, whether the program is started for it or runs already.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/units.h"
#include "live/compile/program_writer.h"
#include "live/host/planner_pool.h"
#include "profiler/attach/launch.h"
#include "profiler/attach/recording.h"

namespace hw::live {

namespace wire = profiler::wire;

inline constexpr int kLivePollMilliseconds = 100;  // between two looks at a live run

/// What acts in a process; the first program is tried first.
struct LivePrograms {
    std::optional<std::int64_t> rank;  // none: any process
    std::vector<LiveProgram> programs;
};

/// What a process is held to, besides plans.
struct LiveLimits {
    std::optional<core::Bytes> cap;  // most live bytes that the framework's allocator gives out
    std::int64_t heuristic = -1;     // of DTR (planners/dtr), which evicts; -1: none does
    bool onOom = false;              // it waits for an allocation that fails, else it keeps the cap
    PlannerCommands planners;        // of steps within a budget
    bool partition = false;          // planners choose what compiled code saves for the backward
    std::uint32_t verify = 0;        // flags of Config that say how much is compared
    bool stableSources = false;      // see wire::kConfigStableSources
};

struct LiveProcess {
    std::int64_t rank = 0;
    std::vector<wire::LiveStepRecord> steps;
    std::vector<wire::LiveDivergenceRecord> divergences;
    std::vector<wire::LiveRescueRecord> rescues;
    std::vector<wire::LiveMismatchRecord> mismatches;
};

/// A step that has ended, as it is told of.
struct LiveStep {
    std::int64_t rank = 0;
    const wire::LiveStepRecord& figures;
    const wire::LiveDivergenceRecord* divergence = nullptr;  // null: it did not leave the plan
    const wire::LiveRescueRecord* rescue = nullptr;          // null: no allocation had failed
    const wire::LiveCurveRecord* curve = nullptr;            // null: none was taken
};
using StepListener = std::function<void(const LiveStep&)>;

/// Tells of each step once, and of each process's first rescue in words.
class StepTeller {
public:
    StepTeller(const profiler::Server& server, StepListener listener,
               const profiler::Progress& progress)
        : server_(server), listener_(std::move(listener)), progress_(progress) {}
    void tellNew();

private:
    void tellRescue(const profiler::Assembler& process);

    const profiler::Server& server_;
    StepListener listener_;
    const profiler::Progress& progress_;
    std::map<const profiler::Assembler*, std::size_t> told_;
    std::set<const profiler::Assembler*> rescued_;
};

struct LiveSummary {
    std::vector<LiveProcess> processes;  // that took steps, by rank; an empty one where none did
    int exitStatus = 0;  // of a program that was started; 128 + signal where one ended it
    /// A program that was started and goes on without its plan.
    std::optional<profiler::Child> running;
    std::vector<std::string> notes;  // each once
    std::string seen;                // how far a program came that took no step
    std::optional<FoundPlan> found;  // under a budget, the last plan that took over
    std::string fault;               // why a runtime has stopped for good; else empty
    std::string shortage;  // the last allocation that was refused because of a limit; else empty
};

/// Writes the programs where the agent looks for them, from the one with that number on. Errors:
/// Internal (no room).
core::Status writePrograms(const std::vector<LivePrograms>& programs, const std::string& path,
                           std::size_t first = 0);
/// The configuration of a process; `framework`: of the process, if it is known. `files`: begin of
/// the names of those that go to and fro. Errors: Target (no runtime can be compiled for it).
core::Result<wire::ConfigRecord> liveConfig(
    const std::optional<profiler::FrameworkFiles>& framework, const LiveLimits& limits,
    const std::string& files, const profiler::Progress& progress);
/// What a program's earlier runs have taught goes to the agent, and what this one has to its next.
void writeKeptOps(const std::vector<std::string>& command, const std::string& folder,
                  const std::string& path);
void rememberMismatches(const std::vector<std::string>& command, const std::string& folder,
                        const LiveSummary& summary);
/// What was reported so far.
LiveSummary liveSummary(const profiler::Server& server);

}  // namespace hw::live

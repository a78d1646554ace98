// SPDX-License-Identifier: MIT
// While a program trains within a budget: steps that it has traced go to a planner, in a process of
// its own at low priority, and what that makes of them goes back (executor/live/guide.h).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/spawn.h"
#include "core/base/units.h"
#include "profiler/attach/recording.h"

namespace hw::profiler {

/// What a planner has found for a traced step.
struct FoundPlan {
    std::string planner;
    core::Bytes peak;
    double overhead = 1;  // of the step's time
    double seconds = 0;   // of planning
};

class HandOver {
public:
    /// `prefix`: begin of the names of the files, which others do not have in their folder.
    /// `planner`: a command that gets a trace and the plan to write as two more arguments, and
    /// writes a FoundPlan beside it as JSON; empty: nobody plans.
    HandOver(std::string prefix, std::vector<std::string> planner, const Progress& progress)
        : prefix_(std::move(prefix)), planner_(std::move(planner)), progress_(progress) {}
    /// Planners that still work are ended.
    ~HandOver();
    HandOver(const HandOver&) = delete;
    HandOver& operator=(const HandOver&) = delete;

    /// To be called every now and then.
    void poll();
    /// The last one; none: there is none as yet.
    const std::optional<FoundPlan>& found() const { return found_; }

private:
    void start(const std::string& trace);
    void finished(const std::string& plan);

    std::string prefix_;
    std::vector<std::string> planner_;
    const Progress& progress_;
    std::map<std::string, pid_t> running_;  // by the plan that is to be written
    std::optional<FoundPlan> found_;
};

}  // namespace hw::profiler

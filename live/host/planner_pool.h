// SPDX-License-Identifier: MIT
// While a program trains within a budget: steps that it has traced go to planners, in processes of
// their own at low priority, and what those make of them goes back (live/runtime/plan_followers.h).
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/spawn.h"
#include "core/base/units.h"
#include "profiler/attach/recording.h"

namespace hw::live {

/// What a planner has found for a traced step.
struct FoundPlan {
    std::string planner;
    core::Bytes peak;
    double overhead = 1;  // of the step's time
    double seconds = 0;   // of planning
};

/// Commands that plan; empty: nothing is planned. Each gets, as three more arguments: a trace, the
/// kind of the step, and a folder that nothing else writes to meanwhile and that lasts as long as
/// the program. There it leaves plans for the program (live/wire/live_program.h) as "KIND.plan",
/// for this kind and maybe for earlier ones, whole or not at all, and a FoundPlan for each as JSON
/// beside it, "KIND.plan.json", first. They are taken at once, and a better one later.
struct PlannerCommands {
    std::vector<std::string> soon;   // for one of several kinds of steps, as it has come by
    std::vector<std::string> often;  // for a kind that comes often
    /// For a region that torch.compile makes: the trace is the region's, and its folder gets what
    /// the program waits for, "KIND.answer" (live/host/planner_task.h).
    std::vector<std::string> region;

    bool any() const { return !soon.empty() || !often.empty() || !region.empty(); }
};

class PlannerPool {
public:
    /// `prefix`: begin of the names of the files, which others do not have in their folder.
    PlannerPool(std::string prefix, PlannerCommands planners, const profiler::Progress& progress)
        : prefix_(std::move(prefix)), planners_(std::move(planners)), progress_(progress) {}
    /// Planners that still work are ended.
    ~PlannerPool();
    PlannerPool(const PlannerPool&) = delete;
    PlannerPool& operator=(const PlannerPool&) = delete;

    /// To be called every now and then.
    void poll();
    /// The last one; none: there is none as yet.
    const std::optional<FoundPlan>& found() const { return found_; }

private:
    /// A planner that works for one process of the program.
    struct Running {
        pid_t pid = 0;
        std::string program;  // begin of the names of that process's files
        std::string taken;    // the trace
        std::string awaited;  // the file that a region waits for; else empty
    };

    void start(const std::vector<std::string>& command, const std::string& program,
               const std::string& kind, const std::string& trace, const std::string& folder);
    /// Plans that are there.
    void take(const std::string& folder, const std::string& program);
    /// What a region waits for; where its planner has ended without a word, that there is none.
    static void answer(const std::string& folder, const Running& planner);
    void tell(const std::string& file);

    std::string prefix_;
    PlannerCommands planners_;
    const profiler::Progress& progress_;
    std::map<std::string, Running> running_;       // by their folders
    std::map<std::string, std::int64_t> given_;    // plans, by process
    std::set<std::pair<std::string, bool>> told_;  // planners whose first plan was told of
    std::optional<FoundPlan> found_;
};

}  // namespace hw::live

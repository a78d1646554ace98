// SPDX-License-Identifier: MIT
// Plans become programs for the training process: one for each kind of step that was recorded.
#pragma once

#include <atomic>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include "core/plan/plan.h"
#include "live/host/live_run.h"
#include "planners/planner.h"
#include "profiler/attach/recording.h"

namespace hw::live {

struct LivePlanFrom {
    std::string session;
    std::vector<std::string> plans;    // several: each for a rank of its own
    std::optional<std::int64_t> step;  // that the plan is for; none: the last that it fits
    bool fromStart = false;            // the first step, too, must have a plan within the budget
};

/// What a process is trained under.
struct LivePlan {
    LivePrograms programs;
    core::Plan plan;
    std::string session;
    std::int64_t step = 0;       // of the session, that the plan is for
    bool stableSources = false;  // see LiveLimits
    std::int64_t recomputedOps = 0;
    /// Of the recorded kinds of steps, those without a plan within the budget; why the last of them
    /// has none.
    std::int64_t unplannedKinds = 0;
    std::string whyUnplanned;
    core::Bytes kept;  // the most of what a plan would drop and nothing could restore
};

/// The programs of other recorded kinds of steps than the one that a plan is for.
struct StepKinds {
    std::vector<LiveProgram> programs;
    std::int64_t unplanned = 0;
    std::string whyUnplanned;
    core::Status firstStep;  // why the first one has none
};

/// `note` is told of what the plans cannot do. One each plan. Errors: BadInput (a file, or a plan
/// that a running program cannot be given), Verification (a plan of another graph, or an invalid
/// one), NoPlan (`fromStart`).
core::Result<std::vector<LivePlan>> prepareLive(const LivePlanFrom& from,
                                                const planners::Progress& progress,
                                                const profiler::Progress& note);

/// The same but for the plans of other kinds of steps than those that the given plans are for.
core::Result<std::vector<LivePlan>> prepareFirst(const LivePlanFrom& from);

/// Has these made on a thread of its own, beside a program that starts.
class OtherKinds {
public:
    /// `plans`, of prepareFirst(), outlive it. `note`: as above, called by poll().
    OtherKinds(std::vector<LivePlan>& plans, profiler::Progress note);
    /// Gives up what is not there yet.
    ~OtherKinds();
    OtherKinds(const OtherKinds&) = delete;
    OtherKinds& operator=(const OtherKinds&) = delete;

    /// Once true, `plans` have them all.
    bool poll();
    std::vector<LivePrograms> programs() const;

private:
    std::vector<LivePlan>& plans_;
    profiler::Progress note_;
    std::atomic<bool> cancelled_{false};
    std::future<core::Result<std::vector<StepKinds>>> made_;
};

}  // namespace hw::live

// SPDX-License-Identifier: MIT
// Plans by input size: what each recorded size gets from Mimose, under the judge.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/result.h"
#include "core/memory/evaluate.h"
#include "core/plan/plan.h"
#include "core/session/session.h"
#include "planners/mimose/mimose.h"

namespace hw::planners {

struct ProfiledStep {
    std::int64_t step = 0;  // its id in the session
    StepProfile profile;
};

/// Every step of a session, as they came in the training. Errors: as loadGraph().
core::Result<std::vector<ProfiledStep>> profileSteps(core::Session& session);

core::Bytes highestPeak(const std::vector<ProfiledStep>& steps);

/// As MimoseEstimator::fit().
core::Result<MimoseEstimator> fitSizes(const std::vector<ProfiledStep>& steps);

/// The first step of each input size, as they came.
std::vector<ProfiledStep> firstOfEachSize(const std::vector<ProfiledStep>& steps);

/// What a step of one input size gets.
struct SizePlan {
    core::Bytes estimatedPeak;           // of the step without a plan
    std::optional<LayerChoice> dropped;  // none: no choice of layers keeps the budget
    core::Schedule schedule;             // this and the next where there is a choice
    core::Evaluation judged;

    bool within(core::Bytes budget) const { return dropped && judged.peak <= budget; }
};
/// `size`: the input bytes of the captured step `graph`.
SizePlan planSize(const core::TrainingGraph& graph, double size, InputAwarePlanner& planner);

/// The same as a plan that can be written out. Errors: Internal when the judge refuses its
/// schedule.
core::Result<core::Plan> writtenPlan(const SizePlan& sized, const core::TrainingGraph& graph,
                                     core::Bytes budget);

}  // namespace hw::planners

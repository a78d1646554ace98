// SPDX-License-Identifier: MIT
#include "planners/mimose/sizes.h"

#include <algorithm>
#include <set>
#include <string>

#include "core/import/import.h"

namespace hw::planners {

using namespace hw::core;

Result<std::vector<ProfiledStep>> profileSteps(Session& session) {
    const auto rows = session.steps();
    if (!rows) return rows.error();
    std::vector<ProfiledStep> steps;
    for (const StepRow& row : *rows) {
        const auto graph = loadGraph(session, row.id);
        if (!graph) return graph.error();
        steps.push_back({row.id, profileStep(*graph)});
    }
    return steps;
}

Bytes highestPeak(const std::vector<ProfiledStep>& steps) {
    Bytes highest;
    for (const ProfiledStep& one : steps) highest = std::max(highest, one.profile.peak);
    return highest;
}

Result<MimoseEstimator> fitSizes(const std::vector<ProfiledStep>& steps) {
    std::vector<StepProfile> profiles;
    profiles.reserve(steps.size());
    for (const ProfiledStep& one : steps) profiles.push_back(one.profile);
    return MimoseEstimator::fit(profiles);
}

std::vector<ProfiledStep> firstOfEachSize(const std::vector<ProfiledStep>& steps) {
    std::vector<ProfiledStep> first;
    std::set<double> seen;
    for (const ProfiledStep& one : steps)
        if (seen.insert(one.profile.size).second) first.push_back(one);
    return first;
}

SizePlan planSize(const TrainingGraph& graph, double size, InputAwarePlanner& planner) {
    SizePlan sized;
    sized.estimatedPeak = planner.estimator().peakAt(size);
    sized.dropped = planner.choose(size);
    if (!sized.dropped) return sized;
    sized.schedule = dropLayers(graph, *sized.dropped);
    sized.judged = evaluate(graph, sized.schedule);
    return sized;
}

Result<Plan> writtenPlan(const SizePlan& sized, const TrainingGraph& graph, Bytes budget) {
    const std::string planner = Mimose::info().name;
    if (!sized.judged.valid)
        return Error{ErrorCode::Internal,
                     planner + " made an invalid schedule for step " +
                         std::to_string(graph.sessionStep) + ": " + sized.judged.why,
                     "this is a fault of Highwater: please report it with the session"};
    Plan plan = emptyPlan(graph);
    plan.planner = planner;
    plan.budget = budget;
    plan.predictedPeak = sized.judged.peak;
    plan.predictedTime = sized.judged.time;
    plan.overhead = ratio(sized.judged.time, graph.totalTime());
    plan.schedule = sized.schedule;
    return plan;
}

}  // namespace hw::planners

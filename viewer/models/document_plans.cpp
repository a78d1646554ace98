// SPDX-License-Identifier: GPL-3.0-or-later
// Plans that are made for a document, by the planners and under the judge.
#include <utility>

#include "planners/plan_with.h"
#include "planners/registry.h"
#include "viewer/models/document.h"

namespace hw::viewer {
namespace {

core::Result<PlanPointer> planBy(const Document& document, const std::string& planner,
                                 const planners::PlanRequest& request,
                                 const planners::Progress& progress) {
    if (!document.plannable)
        return core::badInput("'" + document.path + "' has no ops to plan",
                              "record the step with 'highwater record'");
    planners::PlanRequest asked = request;
    if (const planners::PlannerInfo* info = planners::findPlanner(planner); info && info->takesMenu)
        asked.menu = document.menu;
    core::Result<planners::Outcome> outcome =
        planners::planWith(planner, document.graph, asked, progress);
    if (!outcome) return outcome.error();
    PlanEntry entry;
    entry.planner = toQString(planner);
    entry.status = outcome->status;
    entry.reason = toQString(outcome->reason);
    entry.budget = request.budget;
    entry.peak = outcome->peak;
    entry.solveSeconds = outcome->solveSeconds;
    entry.lowerBound = outcome->lowerBound;
    if (outcome->plan) {
        entry.time = outcome->time;
        entry.overhead = outcome->overhead;
        entry.recomputedOps = outcome->recomputedOps;
        entry.schedule = std::exchange(outcome->plan->schedule, {});
        entry.header = std::move(*outcome->plan);
        if (core::Status drawn = drawPlan(document, entry); !drawn) return drawn.error();
    }
    return std::make_shared<const PlanEntry>(std::move(entry));
}

}  // namespace

core::Result<PlanPointer> computePlan(const Document& document, const std::string& planner,
                                      core::Bytes budget, double seconds,
                                      const planners::Progress& progress) {
    planners::PlanRequest request;
    request.budget = budget;
    request.timeLimitSeconds = seconds;
    return planBy(document, planner, request, progress);
}

core::Result<PlanPointer> quickPlan(const Document& document, core::Bytes budget,
                                    const planners::Progress& progress) {
    constexpr double kAtMost = 2;  // seconds; what takes so long is overtaken by then
    planners::PlanRequest request;
    request.budget = budget;
    request.timeLimitSeconds = kAtMost;
    request.options["search"] = "first";
    return planBy(document, planners::ownPlanner().name, request, progress);
}

core::Result<PlanPointer> ownPlan(const Document& document, const std::string& planner,
                                  const planners::Progress& progress) {
    planners::PlanRequest request;
    request.budget = document.peak();
    core::Result<PlanPointer> plan = planBy(document, planner, request, progress);
    if (!plan || !(*plan)->ok()) return plan;
    PlanEntry tight = **plan;
    tight.budget = tight.header.budget = tight.peak;
    return std::make_shared<const PlanEntry>(std::move(tight));
}

}  // namespace hw::viewer

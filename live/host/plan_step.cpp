// SPDX-License-Identifier: MIT
// Plans a step of a program that trains within a budget: `train` starts this for it. Not for
// people.
#include <chrono>
#include <optional>

#include "live/host/planner_task.h"
#include "live/wire/live_program.h"
#include "planners/mimose/mimose.h"
#include "planners/plan_with.h"
#include "planners/registry.h"

namespace hw::live {
namespace {

namespace wire = profiler::wire;
using namespace hw::core;

// Of searching: for a first plan, which is soon better than none, and for the last one.
constexpr double kFirstSeconds = 1, kSeconds = 10;

}  // namespace

Status planStep(const PlannerTask& asked, const std::string& planner) {
    const auto began = std::chrono::steady_clock::now();
    const auto step = readTrace(asked.trace);
    if (!step) return step.error();
    planners::PlanRequest request;
    request.budget = Bytes(asked.budget) - step->untouched;
    const planners::PlannerInfo* const info = planners::findPlanner(planner);
    if (info && info->takesOption("encodings") &&
        !wire::kBudgetActions.has(wire::LiveAction::Encode))
        request.options["encodings"] = "off";
    const auto mode =
        planner == planners::Mimose::info().name ? wire::LiveMode::Mimose : wire::LiveMode::Plan;
    std::optional<double> best;  // overhead
    for (const double seconds : {kFirstSeconds, kSeconds}) {
        request.timeLimitSeconds = seconds;
        const auto outcome = planners::planWith(planner, step->graph, request);
        if (!outcome) return outcome.error();
        // What has ended before its time would not find more in more of it.
        const bool last = seconds == kSeconds || outcome->solveSeconds < seconds;
        if (!outcome->plan && last && !best) return Error{ErrorCode::NoPlan, outcome->reason, ""};
        if (outcome->plan && (!best || outcome->overhead < *best)) {
            best = outcome->overhead;
            const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
            const Status given =
                givePlan(asked, asked.kind, mode, *step, *outcome->plan,
                         {{"planner", planner},
                          {"peak_bytes", (outcome->peak + step->untouched).count()},
                          {"overhead", outcome->overhead},
                          {"recomputed_ops", outcome->recomputedOps},
                          {"seconds", took.count()}});
            if (!given) return given;
        }
        if (last) break;
    }
    return {};
}

}  // namespace hw::live

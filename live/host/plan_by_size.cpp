// SPDX-License-Identifier: MIT
// Plans by input size for a program that trains within a budget: `train` starts this for each kind
// of step that comes up. Not for people.
#include <chrono>
#include <filesystem>
#include <fstream>

#include "live/host/planner_task.h"
#include "planners/mimose/collection.h"
#include "planners/mimose/sizes.h"
#include "planners/plan_with.h"

namespace hw::live {
namespace {

using namespace hw::core;
using planners::Collection;
using planners::SeenStep;

/// What is known of the sizes so far, in the folder.
std::string knownFile(const PlannerTask& asked) {
    return asked.folder + "/sizes.json";
}

/// A step that waits for the end of the collection phase.
std::string waitingFile(const PlannerTask& asked, std::int64_t kind) {
    return asked.folder + "/" + std::to_string(kind) + ".step";
}

Collection readKnown(const PlannerTask& asked) {
    std::ifstream file(knownFile(asked));
    const Json json = Json::parse(file, nullptr, false);
    std::vector<SeenStep> steps;
    if (!json.is_array()) return Collection();
    for (const Json& each : json) {
        SeenStep step;
        step.kind = each.at("kind");
        step.inputs = each.at("inputs").get<std::vector<std::int64_t>>();
        step.peak = Bytes(each.at("peak").get<std::int64_t>());
        step.planned = each.at("planned");
        for (const Json& layer : each.at("layers"))
            step.layers.push_back({layer.at(0), Bytes(layer.at(1).get<std::int64_t>()),
                                   Nanoseconds(layer.at(2).get<std::int64_t>())});
        steps.push_back(std::move(step));
    }
    return Collection(std::move(steps));
}

Status writeKnown(const PlannerTask& asked, const Collection& known) {
    Json json = Json::array();
    for (const SeenStep& step : known.steps()) {
        Json layers = Json::array();
        for (const auto& layer : step.layers)
            layers.push_back({layer.path, layer.bytes.count(), layer.time.count()});
        json.push_back({{"kind", step.kind},
                        {"inputs", step.inputs},
                        {"peak", step.peak.count()},
                        {"planned", step.planned},
                        {"layers", layers}});
    }
    return writeWhole(knownFile(asked), json.dump());
}

/// The layers that its size gets or, where these do not keep the budget after all, as many as it
/// takes. Errors: NoPlan.
Result<Plan> planOf(const TracedStep& step, double size, Bytes budget,
                    std::optional<planners::InputAwarePlanner>& planner) {
    if (planner) {
        const auto sized = planners::planSize(step.graph, size, *planner);
        if (sized.dropped && sized.judged.valid && sized.within(budget))
            return planners::writtenPlan(sized, step.graph, budget);
    }
    planners::PlanRequest request;
    request.budget = budget;
    const auto outcome = planners::planWith(planners::Mimose::info().name, step.graph, request);
    if (!outcome) return outcome.error();
    if (!outcome->plan) return Error{ErrorCode::NoPlan, outcome->reason, ""};
    return *outcome->plan;
}

/// Nothing where no choice of layers keeps the budget.
Status planDue(const PlannerTask& asked, const SeenStep& seen, double size, Collection::Due& due) {
    const auto began = std::chrono::steady_clock::now();
    const bool last = seen.kind == asked.kind;
    const auto step = readTrace(last ? asked.trace : waitingFile(asked, seen.kind));
    if (!step) return step.error();
    const auto plan = planOf(*step, size, Bytes(asked.budget) - step->untouched, due.planner);
    if (!plan) return {};
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    return givePlan(asked, seen.kind, profiler::wire::LiveMode::Mimose, *step, *plan,
                    {{"planner", plan->planner},
                     {"by_size", true},
                     {"peak_bytes", (plan->predictedPeak + step->untouched).count()},
                     {"overhead", plan->overhead},
                     {"seconds", took.count()}});
}

}  // namespace

Status planBySize(const PlannerTask& asked) {
    const auto step = readTrace(asked.trace);
    if (!step) return step.error();
    Collection known = readKnown(asked);
    known.add(planners::seenStep(asked.kind, step->graph, step->untouched));
    Collection::Due due = known.due(Bytes(asked.budget));
    std::error_code error;
    for (const auto& each : due.steps) {
        const SeenStep& seen = known.steps()[each.index];
        if (Status done = planDue(asked, seen, each.size, due); !done) return done;
        std::filesystem::remove(waitingFile(asked, seen.kind), error);
        known.notePlanned(each.index);
    }
    if (!known.steps().back().planned)
        std::filesystem::copy_file(asked.trace, waitingFile(asked, asked.kind), error);
    return writeKnown(asked, known);
}

}  // namespace hw::live

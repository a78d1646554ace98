// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/live_plan.h"

#include <algorithm>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <set>

namespace hw::app {
namespace {

using namespace hw::core;

constexpr double kOtherStepSeconds = 5;  // to plan a step that the given plan is not for
constexpr std::size_t kMostPrograms = 8;

Result<profiler::LiveProgram> compile(LoadedStep& step, const Plan& plan) {
    const auto tensors = step.session.tensors();
    if (!tensors) return tensors.error();
    return profiler::liveProgram(step.graph, plan, *tensors);
}

/// A plan for another recorded step by the given one's planner: within its peak, or at least within
/// its budget.
Result<Plan> planLike(const Plan& plan, const LoadedStep& step) {
    planners::PlanRequest request;
    request.seed = plan.seed;
    request.timeLimitSeconds = kOtherStepSeconds;
    std::string why;
    for (const Bytes budget : {plan.predictedPeak, plan.budget}) {
        request.budget = budget;
        const auto outcome =
            planners::planWith(plan.planner, step.graph, request, terminalProgress());
        clearProgress();
        if (!outcome) return outcome.error();
        if (outcome->plan) return *outcome->plan;
        why = outcome->reason;
    }
    return Error{ErrorCode::NoPlan,
                 "step " + std::to_string(step.graph.sessionStep) + " has no plan within " +
                     humanBytes(plan.budget) + ": " + why,
                 "leave out --from-start, or plan with a larger budget"};
}

/// Steps differ: optimizers make their states in the first one, gradients are made or zeroed, the
/// last batch is smaller. Each kind that was recorded gets a plan of its own. `firstStep`: why the
/// first one has none.
Status addOtherSteps(const LivePlanFrom& from, const LoadedStep& planned, const Plan& plan,
                     LivePlan& prepared, Status& firstStep) {
    const auto steps = planned.session.steps();
    if (!steps) return steps.error();
    const auto own = std::find_if(steps->begin(), steps->end(), [&](const StepRow& row) {
        return row.id == planned.graph.sessionStep;
    });
    std::set<std::string> known{plan.fingerprint};
    for (const StepRow& row : *steps) {
        if (prepared.programs.size() == kMostPrograms) break;
        if (own == steps->end() || row.process != own->process) continue;
        Status unplanned;
        Status& outcome = row.id == 0 ? firstStep : unplanned;
        auto step = loadStep(from.session, row.id, plan.costs);
        if (!step) {
            outcome = step.error();
            continue;
        }
        if (!known.insert(step->graph.fingerprint()).second) continue;
        const auto other = planLike(plan, *step);
        if (!other) {
            outcome = other.error();
            continue;
        }
        auto program = compile(*step, *other);
        if (!program) return program.error();
        prepared.programs.push_back(std::move(*program));
    }
    return {};
}

std::optional<double> median(std::vector<std::int64_t> values) {
    if (values.empty()) return std::nullopt;
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return static_cast<double>(*middle);
}

Json orNull(const std::optional<double>& value) {
    return value ? Json(*value) : Json(nullptr);
}

Json reportOf(const profiler::LiveSummary& summary, const LivePlan& prepared,
              const std::optional<Bytes>& cap) {
    std::vector<std::int64_t> planned, unplanned;
    std::int64_t peak = 0, anyPeak = 0, recomputed = 0, restored = 0, pinned = 0;
    std::int64_t ops = 0, runtime = 0;  // of planned steps
    for (const auto& step : summary.steps) {
        (step.planned ? planned : unplanned).push_back(step.endNs - step.beginNs);
        anyPeak = std::max(anyPeak, step.peak);
        if (step.planned) peak = std::max(peak, step.peak);
        if (step.planned) ops += step.ops, runtime += step.runtimeNs;
        recomputed += step.recomputed;
        restored += step.restored;
        pinned = std::max(pinned, step.pinned);
    }
    const auto with = median(planned), without = median(unplanned);
    Json divergences = Json::array(), peaks = Json::array();
    for (const auto& step : summary.steps) peaks.push_back(step.peak);
    for (const auto& each : summary.divergences)
        divergences.push_back({{"step", each.step},
                               {"op", each.op},
                               {"expected", each.expected},
                               {"found", each.found}});
    const auto& plan = prepared.plan;
    return {{"steps", summary.steps.size()},
            {"steps_planned", planned.size()},
            {"steps_diverged", summary.divergences.size()},
            {"divergences", divergences},
            {"modes", {{"plan", planned.size()}, {"none", unplanned.size()}}},
            {"budget_bytes", plan  ? Json(plan->budget.count())
                             : cap ? Json(cap->count())
                                   : Json(nullptr)},
            {"predicted_peak_bytes", plan ? Json(plan->predictedPeak.count()) : Json(nullptr)},
            {"measured_peak_bytes", planned.empty() ? anyPeak : peak},
            {"step_peaks_bytes", peaks},
            {"predicted_overhead", plan ? Json(plan->overhead) : Json(nullptr)},
            {"measured_overhead", with && without ? Json(*with / *without) : Json(nullptr)},
            {"planned_step_ns", orNull(with)},
            {"unplanned_step_ns", orNull(without)},
            {"runtime_ns_per_op", ops > 0 ? Json(runtime / ops) : Json(nullptr)},
            {"recomputed_ops", recomputed},
            {"restored_bytes", restored},
            {"pinned_bytes", pinned + prepared.kept.count()},
            {"exit_status", summary.exitStatus}};
}

void tell(const Json& report) {
    const auto row = [](const char* name, const std::string& value) {
        std::cerr << "  " << std::left << std::setw(16) << name << value << '\n';
    };
    const auto bytes = [&](const char* key) {
        return report[key].is_null() ? std::string("-") : humanBytes(Bytes(report[key]));
    };
    const auto overhead = [&](const char* key) {
        return report[key].is_null() ? std::string("-") : percent(report[key]);
    };
    std::cerr << "highwater: " << report["steps"] << " steps, " << report["steps_planned"]
              << " under the plan, " << report["steps_diverged"] << " left it\n";
    row("peak",
        bytes("measured_peak_bytes") + " (predicted " + bytes("predicted_peak_bytes") + ")");
    row("step time",
        overhead("measured_overhead") + " (predicted " + overhead("predicted_overhead") + ")");
    for (const Json& each : report["divergences"]) {
        std::cerr << "  step " << each["step"] << ", op " << each["op"] << ": expected "
                  << each["expected"].get<std::string>() << ", came "
                  << each["found"].get<std::string>() << '\n';
        if (&each - &report["divergences"][0] == 4) break;
    }
}

}  // namespace

Result<LivePlan> prepareLive(const LivePlanFrom& from) {
    LivePlan prepared;
    auto plan = readPlanFile(from.plan);
    if (!plan) return plan.error();
    auto step = loadStep(from.session, from.step, plan->costs);
    if (!step) return step.error();
    if (Status same = requireSameGraph(*plan, step->graph); !same) return same.error();
    const Evaluation judged = evaluate(step->graph, plan->schedule);
    if (!judged.valid)
        return Error{ErrorCode::Verification, "the plan is invalid: " + judged.why,
                     "plan again; a plan file should not be edited by hand"};
    auto program = compile(*step, *plan);
    if (!program) return program.error();
    prepared.kept = program->kept;
    prepared.programs.push_back(std::move(*program));
    Status firstStep;
    if (Status done = addOtherSteps(from, *step, *plan, prepared, firstStep); !done)
        return done.error();
    if (!firstStep && from.fromStart) return firstStep.error();
    prepared.plan = std::move(*plan);
    return prepared;
}

void reportLive(const profiler::LiveSummary& summary, const LivePlan& plan,
                const std::optional<Bytes>& cap, const std::string& file, const Common& common) {
    for (const std::string& note : summary.notes) std::cerr << "note: " << note << '\n';
    const Json report = reportOf(summary, plan, cap);
    if (!file.empty()) {
        std::ofstream out(file);
        out << report.dump(2) << '\n';
        if (!out.flush()) std::cerr << "note: the report could not be written to " << file << '\n';
    }
    if (common.json)
        printJson(report);
    else
        tell(report);
}

}  // namespace hw::app

// SPDX-License-Identifier: GPL-3.0-or-later
#include "profiler/attach/train.h"

#include <algorithm>
#include <fstream>
#include <iomanip>
#include <iostream>

#include "app/cli.h"
#include "app/recording.h"

namespace hw::app {
namespace {

using namespace hw::core;

struct Arguments {
    std::vector<std::string> words, command;
    std::string cap, report;
    std::optional<std::int64_t> step;
    bool fromStart = false;
};

constexpr double kFirstStepSeconds = 5;

/// What the program is trained under.
struct Prepared {
    std::vector<profiler::LiveProgram> programs;
    std::optional<Plan> plan;
    Bytes kept;  // what the plan would drop and nothing could restore
};

Result<profiler::LiveProgram> compile(LoadedStep& step, const Plan& plan) {
    const auto tensors = step.session.tensors();
    if (!tensors) return tensors.error();
    return profiler::liveProgram(step.graph, plan, *tensors);
}

/// A plan of the first recorded step, within the same budget: it is another one where optimizers
/// make their states in it, or gradients come into being.
Status addFirstStep(const std::string& session, const Plan& plan, Prepared& prepared) {
    auto first = loadStep(session, 0, plan.costs);
    if (!first) return first.error();
    if (first->graph.fingerprint() == plan.fingerprint) return {};
    planners::PlanRequest request;
    request.budget = plan.budget;
    request.seed = plan.seed;
    request.timeLimitSeconds = kFirstStepSeconds;
    const auto outcome =
        planners::planWith(plan.planner, first->graph, request, terminalProgress());
    clearProgress();
    if (!outcome) return outcome.error();
    if (!outcome->plan)
        return Error{
            ErrorCode::NoPlan,
            "the first step has no plan within " + humanBytes(plan.budget) + ": " + outcome->reason,
            "leave out --from-start, or plan with a larger budget"};
    auto program = compile(*first, *outcome->plan);
    if (!program) return program.error();
    prepared.programs.push_back(std::move(*program));
    return {};
}

Result<Prepared> prepare(const Arguments& arguments) {
    Prepared prepared;
    if (arguments.words.empty()) return prepared;
    if (arguments.words.size() != 2)
        return Error{ErrorCode::Usage, "a plan is needed beside its session",
                     "write: highwater train SESSION PLAN -- python3 train.py"};
    auto plan = readPlanFile(arguments.words[1]);
    if (!plan) return plan.error();
    auto step = loadStep(arguments.words[0], arguments.step, plan->costs);
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
    if (Status done = addFirstStep(arguments.words[0], *plan, prepared);
        !done && arguments.fromStart)
        return done.error();
    prepared.plan = std::move(*plan);
    return prepared;
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

Json reportOf(const profiler::TrainSummary& summary, const Prepared& prepared,
              const std::optional<Bytes>& cap) {
    std::vector<std::int64_t> planned, unplanned;
    std::int64_t peak = 0, anyPeak = 0, recomputed = 0, restored = 0, pinned = 0;
    for (const auto& step : summary.steps) {
        (step.planned ? planned : unplanned).push_back(step.endNs - step.beginNs);
        anyPeak = std::max(anyPeak, step.peak);
        if (step.planned) peak = std::max(peak, step.peak);
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

int run(const Arguments& arguments, const Common& common) {
    if (arguments.command.empty())
        return fail({ErrorCode::Usage, "no program to train",
                     "write: highwater train SESSION PLAN -- python3 train.py"});
    std::optional<Bytes> cap;
    if (!arguments.cap.empty()) {
        const auto parsed = parseBytes(arguments.cap);
        if (!parsed) return fail(parsed.error());
        cap = *parsed;
    }
    auto prepared = prepare(arguments);
    if (!prepared) return fail(prepared.error());
    profiler::TrainOptions options;
    options.command = arguments.command;
    options.programs = std::move(prepared->programs);
    options.cap = cap;
    options.childStdoutToStderr = common.json;
    const auto summary = profiler::train(options, toTerminal);
    if (!summary) return fail(summary.error());
    for (const std::string& note : summary->notes) std::cerr << "note: " << note << '\n';
    const Json report = reportOf(*summary, *prepared, cap);
    if (!arguments.report.empty()) {
        std::ofstream file(arguments.report);
        file << report.dump(2) << '\n';
        if (!file.flush())
            std::cerr << "note: the report could not be written to " << arguments.report << '\n';
    }
    if (common.json)
        printJson(report);
    else
        tell(report);
    return summary->exitStatus;
}

}  // namespace

void addTrain(CLI::App& app, Common& common) {
    auto* command = addCommand(
        app, common, "train",
        "Start a training program and carry a plan out in it: less memory, the same bits");
    auto arguments = std::make_shared<Arguments>();
    command->add_option("--cap", arguments->cap,
                        "Most live bytes that the framework's allocator gives out (\"4GiB\"): a "
                        "small card on a large machine");
    command->add_flag("--from-start", arguments->fromStart,
                      "Start only if the first step, too, has a plan within the budget");
    command->add_option("--report", arguments->report, "Write what was measured to this JSON file");
    command->add_option("--step", arguments->step,
                        "The step that the plan is for (default: the last complete one)");
    command
        ->add_option("WORDS", arguments->words,
                     "The session and its plan (without them nothing is dropped); after --: the "
                     "program and its arguments")
        ->option_text("[SESSION PLAN] [-- PROG ARGS...]");
    command->callback([arguments, &common] {
        arguments->command = common.program;
        common.exitCode = run(*arguments, common);
    });
}

}  // namespace hw::app

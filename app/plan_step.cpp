// SPDX-License-Identifier: GPL-3.0-or-later
// Plans a step of a program that trains within a budget: `train` starts this for it. Not for
// people.
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <fstream>

#include "app/cli.h"
#include "profiler/recorder/live_program.h"
#include "profiler/recorder/step_trace.h"

namespace hw::app {
namespace {

using namespace hw::core;

constexpr double kSeconds = 10;
constexpr int kLowestPriority = 19;

struct Arguments {
    std::string planner, trace, plan;
    std::int64_t budget = 0;
};

Status writeWhole(const std::string& path, const std::string& text) {
    const std::string part = path + ".part";
    std::ofstream file(part, std::ios::binary);
    file << text;
    file.close();
    if (file && std::rename(part.c_str(), path.c_str()) == 0) return {};
    return Error{ErrorCode::Internal, "cannot write '" + path + "'", ""};
}

Status run(const Arguments& arguments) {
    const auto began = std::chrono::steady_clock::now();
    std::ifstream file(arguments.trace, std::ios::binary);
    const auto step =
        profiler::readStepTrace(std::string{std::istreambuf_iterator<char>(file), {}});
    if (!step) return step.error();
    planners::PlanRequest request;
    request.budget = Bytes(arguments.budget) - step->untouched;
    request.timeLimitSeconds = kSeconds;
    if (arguments.planner == "echo") request.options["encodings"] = "off";
    const auto outcome = planners::planWith(arguments.planner, step->graph, request);
    if (!outcome) return outcome.error();
    if (!outcome->plan) return Error{ErrorCode::NoPlan, outcome->reason, ""};
    const auto program = profiler::liveProgram(step->graph, *outcome->plan, step->tensors);
    if (!program) return program.error();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    const Json found{{"planner", arguments.planner},
                     {"peak_bytes", (outcome->peak + step->untouched).count()},
                     {"overhead", outcome->overhead},
                     {"recomputed_ops", outcome->recomputedOps},
                     {"seconds", took.count()}};
    if (Status done = writeWhole(arguments.plan + ".json", found.dump()); !done) return done;
    return writeWhole(arguments.plan, program->bytes);
}

}  // namespace

void addPlanStep(CLI::App& app, Common& common) {
    auto* command = app.add_subcommand("plan-step")->group("");
    auto arguments = std::make_shared<Arguments>();
    command->add_option("--budget", arguments->budget)->required();
    command->add_option("--planner", arguments->planner)->required();
    command->add_option("TRACE", arguments->trace)->required();
    command->add_option("PLAN", arguments->plan)->required();
    command->callback([arguments, &common] {
        setpriority(PRIO_PROCESS, 0, kLowestPriority);
        const Status done = run(*arguments);
        common.exitCode = done ? 0 : fail(done.error());
    });
}

}  // namespace hw::app

// SPDX-License-Identifier: GPL-3.0-or-later
// `run` hands over to an executor, a program of its own because of what libtorch pulls in.
#include <unistd.h>

#include <iostream>

#include "app/recording.h"
#include "app/run_sizes.h"
#include "core/family/predicted_session.h"
#include "core/import/import.h"
#include "executor/host/extension_libraries.h"
#include "executor/host/find_executor.h"
#include "planners/registry.h"

namespace hw::app {
namespace {

using namespace hw::core;

struct RunArguments {
    std::string file, plan, device = "cpu", implementations, python;
    std::optional<std::int64_t> step, steps, repeat;
    SizesArguments sizes;
    std::vector<std::string> modules;
    bool check = false;
};

std::string sizePlanners() {
    return planners::plannersWith(&planners::PlannerInfo::plansSizes);
}

// Planning belongs to `plan`, but for what one plan cannot say.
Status checkSizes(const RunArguments& arguments) {
    const bool budget = !arguments.sizes.budget.empty() || arguments.sizes.ratio.has_value();
    const std::string& planner = arguments.sizes.planner;
    if (planner.empty()) {
        if (!budget) return {};
        return Error{ErrorCode::Usage, "--budget and --ratio ask for --planner " + sizePlanners(),
                     "plan one step with `highwater plan`, and give its plan"};
    }
    const planners::PlannerInfo* info = planners::findPlanner(planner);
    if (info == nullptr || !info->plansSizes)
        return Error{
            ErrorCode::Usage, "'" + planner + "' plans one step, run plans by input size only",
            "--planner " + sizePlanners() + ", or plan with `highwater plan` and give its plan"};
    if (arguments.sizes.budget.empty() == !arguments.sizes.ratio.has_value())
        return Error{ErrorCode::Usage, "exactly one of --budget and --ratio is needed",
                     "for example --budget 4GiB; a ratio is of the highest recorded peak"};
    if (arguments.sizes.ratio && !(*arguments.sizes.ratio > 0))
        return Error{ErrorCode::Usage, "the ratio must be above 0",
                     "0.5 is half of the highest recorded peak"};
    if (!arguments.plan.empty() || arguments.step || arguments.steps ||
        !arguments.implementations.empty())
        return Error{
            ErrorCode::Usage,
            "--planner " + planner + " runs one step of each input size under a plan of its own",
            "leave out the plan, --step, --steps and --implementations"};
    return {};
}

int run(const RunArguments& arguments, const Common& common) {
    if (const Status usable = checkSizes(arguments); !usable) return fail(usable.error());
    auto session = openAny(arguments.file);
    if (!session) return fail(session.error());
    if (arguments.check) {
        const auto who = executor::whoRuns(*session);
        const std::string named = executor::pythonNamedBy(*session);
        if (common.json)
            answerWith(who ? Json{{"runs_with", *who}, {"session_names", named}}
                           : Json{{"session_names", named}});
        if (!who) return fail(who.error());
        if (!common.json) std::cout << "runs with " << *who << '\n';
        return 0;
    }
    const auto predicted = predictedSize(*session);
    if (!predicted) return fail(predicted.error());
    if (*predicted)
        return fail({ErrorCode::BadInput,
                     "session '" + arguments.file +
                         "' was never recorded: it is a prediction of "
                         "size " +
                         std::to_string(**predicted) + ", without values to run on",
                     "train the program itself: highwater train SESSION PLAN -- PROG"});
    // Extensions fit the torch that they were built for: that of the interpreter that imports them.
    const std::string python =
        arguments.python.empty() && !arguments.modules.empty() ? "python3" : arguments.python;
    const auto executor = executor::executorFor(
        *session, {python, arguments.device == "cuda", !arguments.modules.empty()}, toTerminal);
    if (!executor) return fail(executor.error());
    std::vector<std::string> options{"--device", arguments.device};
    if (arguments.repeat)
        options.insert(options.end(), {"--repeat", std::to_string(*arguments.repeat)});
    if (!arguments.modules.empty()) {
        const auto libraries = executor::librariesOfModules(python, arguments.modules);
        if (!libraries) return fail(libraries.error());
        for (const std::string& library : *libraries)
            options.insert(options.end(), {"--library", library});
    }
    if (!arguments.sizes.planner.empty())
        return runSizes(arguments.file, arguments.sizes, *executor, options, common);
    std::vector<std::string> command{*executor, arguments.file};
    if (!arguments.plan.empty()) command.push_back(arguments.plan);
    if (arguments.step) command.insert(command.end(), {"--step", std::to_string(*arguments.step)});
    if (arguments.steps)
        command.insert(command.end(), {"--steps", std::to_string(*arguments.steps)});
    if (!arguments.implementations.empty())
        command.insert(command.end(), {"--implementations", arguments.implementations});
    command.insert(command.end(), options.begin(), options.end());
    if (common.json) command.emplace_back("--json");
    std::vector<char*> argv;
    for (std::string& part : command) argv.push_back(part.data());
    argv.push_back(nullptr);
    execv(argv[0], argv.data());
    return fail({ErrorCode::Internal, "cannot start " + *executor, "build again"});
}

}  // namespace

void addRun(CLI::App& app, Common& common) {
    auto* command = addCommand(
        app, common, "run",
        "Run a recorded step natively, under a plan, and compare every result; the session keeps "
        "what was measured, and the plan");
    auto arguments = std::make_shared<RunArguments>();
    command->add_option("SESSION", arguments->file, "A recorded session")->required();
    command->add_option("PLAN", arguments->plan, "The plan (default: none, the captured order)");
    command->add_option("--step", arguments->step, "The step (default: the last complete one)");
    command->add_option("--steps", arguments->steps,
                        "Train so many steps in a row, with and without the plan, and compare");
    command->add_option("--repeat", arguments->repeat, "Passes that are timed (default: 3)");
    command->add_option("--device", arguments->device, "cpu (default) or cuda");
    command->add_option("--python", arguments->python,
                        "An interpreter: run with its torch (default: the one that the session was "
                        "recorded with, where you have trained with it before; else python3)");
    command
        ->add_option("--import", arguments->modules,
                     "A Python module whose ops may run, too: it is imported with --python "
                     "(default: python3), and its libraries are loaded")
        ->allow_extra_args(false);
    command->add_option("--implementations", arguments->implementations,
                        "Measure other implementations of ops, as a menu for the planner " +
                            planners::plannersWith(&planners::PlannerInfo::takesMenu) +
                            ": "
                            "exact (those with the same results to the bit) or all");
    command->add_option(
        "--planner", arguments->sizes.planner,
        sizePlanners() + ": one step of each recorded input size, each under its own plan");
    command->add_option("--budget", arguments->sizes.budget,
                        "Of --planner: highest peak, as 4GiB, 500MB or bytes");
    command
        ->add_option("--ratio", arguments->sizes.ratio,
                     "Of --planner: highest peak as a share of the highest recorded one")
        ->check(positive(kMostRatio));
    command->add_flag("--check", arguments->check,
                      "Run nothing: say with which torch it would run, or what is missing");
    command->callback([arguments, &common] { common.exitCode = run(*arguments, common); });
}

}  // namespace hw::app

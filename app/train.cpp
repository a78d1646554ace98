// SPDX-License-Identifier: GPL-3.0-or-later
#include "profiler/attach/train.h"

#include <filesystem>
#include <iostream>
#include <set>

#include "app/live_progress.h"
#include "app/live_report.h"
#include "app/recording.h"
#include "planners/dtr/dtr.h"
#include "planners/mimose/mimose.h"
#include "planners/registry.h"

namespace hw::app {
namespace {

using namespace hw::core;

struct Arguments {
    std::vector<std::string> words, command;
    std::string cap, budget, planner = planners::ownPlanner().name, report, progress;
    LivePlanFrom from;
};

/// The session, and its plans: files, or those in a folder by their names.
Result<LivePlanFrom> plansOf(const Arguments& arguments) {
    LivePlanFrom from = arguments.from;
    from.session = arguments.words.front();
    for (std::size_t i = 1; i < arguments.words.size(); ++i) {
        const std::string& path = arguments.words[i];
        std::error_code error;
        if (!std::filesystem::is_directory(path, error)) {
            from.plans.push_back(path);
            continue;
        }
        std::set<std::string> files;
        for (const auto& entry : std::filesystem::directory_iterator(path, error))
            if (isPlanFile(entry.path().string())) files.insert(entry.path().string());
        if (files.empty())
            return Error{ErrorCode::BadInput, "no plan files in " + path,
                         "make them with 'highwater plan -o'"};
        from.plans.insert(from.plans.end(), files.begin(), files.end());
    }
    if (from.plans.empty())
        return Error{ErrorCode::Usage, "a plan is needed beside its session",
                     "write: highwater train SESSION PLAN -- python3 train.py"};
    return from;
}

/// Plans by size are Mimose's; who asks for another planner gets no plans but of that one.
profiler::PlannerCommands plannersOf(const std::string& planner, Bytes budget) {
    const std::string bytes = std::to_string(budget.count());
    profiler::PlannerCommands commands;
    commands.often = {"/proc/self/exe", "plan-step", "--budget", bytes, "--planner", planner};
    if (planner == planners::ownPlanner().name || planner == planners::Mimose::info().name)
        commands.soon = {"/proc/self/exe", "plan-sizes", "--budget", bytes};
    return commands;
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
    std::optional<planners::DtrHeuristic> heuristic;
    if (!arguments.budget.empty()) {
        if (!arguments.words.empty())
            return fail({ErrorCode::Usage, "a budget and a plan at once",
                         "give either a session with its plan, or --budget"});
        const auto parsed = parseBytes(arguments.budget);
        if (!parsed) return fail(parsed.error());
        heuristic = planners::Dtr::find(arguments.planner);
        if (!heuristic && planners::findPlanner(arguments.planner) == nullptr)
            return fail({ErrorCode::Usage, "there is no planner '" + arguments.planner + "'",
                         "'highwater list planners' names them"});
        cap = cap ? std::min(*cap, *parsed) : *parsed;
    }
    std::vector<LivePlan> plans;
    if (!arguments.words.empty()) {
        auto from = plansOf(arguments);
        if (!from) return fail(from.error());
        auto prepared = prepareLive(*from);
        if (!prepared) return fail(prepared.error());
        plans = std::move(*prepared);
    }
    profiler::TrainOptions options;
    options.command = arguments.command;
    for (const LivePlan& plan : plans) options.programs.push_back(plan.programs);
    options.cap = cap;
    const bool budget = !arguments.budget.empty();
    if (budget)
        options.heuristic =
            static_cast<std::int64_t>(heuristic.value_or(planners::DtrHeuristic::EqClass));
    if (budget && !heuristic) options.planners = plannersOf(arguments.planner, *cap);
    options.childStdoutToStderr = common.json;
    LiveProgress progress;
    if (const Status opened = progress.open(arguments.progress); !opened)
        return fail(opened.error());
    options.onStep = progress.listener();
    auto summary = profiler::train(options, toTerminal);
    if (!summary) return fail(summary.error());
    if (!plans.empty()) storeLive(arguments.words.front(), *summary, plans);
    progress.ended(reportLive(*summary, plans, cap, arguments.report, common));
    if (budget && summary->exitStatus != 0 && !summary->shortage.empty())
        return fail({ErrorCode::NoPlan,
                     "the program did not get through within " + humanBytes(*cap) + ": " +
                         summary->shortage,
                     "give a larger --budget"});
    if (!summary->running) return summary->exitStatus;
    std::cerr << "highwater: no plan acts in the program any more; it goes on\n";
    return profiler::exitStatusOf(summary->running->wait());
}

}  // namespace

void addTrain(CLI::App& app, Common& common) {
    auto* command = addCommand(
        app, common, "train",
        "Start a training program and carry a plan out in it: less memory, the same bits");
    auto arguments = std::make_shared<Arguments>();
    command->add_option("--budget", arguments->budget,
                        "Keep live bytes within this (\"20GB\") from the first op on, without a "
                        "session or a plan: DTR evicts and makes again while the program trains");
    command->add_option(
        "--planner", arguments->planner,
        "With --budget: whose plan takes over from DTR once it is there, or which of "
        "DTR's heuristics is to stay (\"dtr:lru\")");
    command->add_option("--cap", arguments->cap,
                        "Most live bytes that the framework's allocator gives out (\"4GiB\"): a "
                        "small card on a large machine");
    command->add_flag("--from-start", arguments->from.fromStart,
                      "Start only if the first step, too, has a plan within the budget");
    command->add_option("--report", arguments->report, "Write what was measured to this JSON file");
    command->add_option("--progress", arguments->progress, kProgressHelp);
    command->add_option("--step", arguments->from.step,
                        "The step that the plan is for (default: the last complete one)");
    command
        ->add_option("WORDS", arguments->words,
                     "The session and its plan, or one plan for each rank, or a folder of them "
                     "(without them nothing is dropped); after --: the program and its arguments")
        ->option_text("[SESSION PLAN...] [-- PROG ARGS...]");
    command->callback([arguments, &common] {
        arguments->command = common.program;
        common.exitCode = run(*arguments, common);
    });
}

}  // namespace hw::app

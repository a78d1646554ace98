// SPDX-License-Identifier: GPL-3.0-or-later
#include "profiler/attach/train.h"

#include "app/live_plan.h"
#include "app/recording.h"

namespace hw::app {
namespace {

using namespace hw::core;

struct Arguments {
    std::vector<std::string> words, command;
    std::string cap, report;
    LivePlanFrom from;
};

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
    LivePlan plan;
    if (!arguments.words.empty()) {
        if (arguments.words.size() != 2)
            return fail({ErrorCode::Usage, "a plan is needed beside its session",
                         "write: highwater train SESSION PLAN -- python3 train.py"});
        LivePlanFrom from = arguments.from;
        from.session = arguments.words[0];
        from.plan = arguments.words[1];
        auto prepared = prepareLive(from);
        if (!prepared) return fail(prepared.error());
        plan = std::move(*prepared);
    }
    profiler::TrainOptions options;
    options.command = arguments.command;
    options.programs = std::move(plan.programs);
    options.cap = cap;
    options.childStdoutToStderr = common.json;
    const auto summary = profiler::train(options, toTerminal);
    if (!summary) return fail(summary.error());
    reportLive(*summary, plan, cap, arguments.report, common);
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
    command->add_flag("--from-start", arguments->from.fromStart,
                      "Start only if the first step, too, has a plan within the budget");
    command->add_option("--report", arguments->report, "Write what was measured to this JSON file");
    command->add_option("--step", arguments->from.step,
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

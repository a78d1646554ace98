// SPDX-License-Identifier: GPL-3.0-or-later
#include "live/host/train.h"

#include <filesystem>
#include <iostream>
#include <set>

#include "app/live_options.h"
#include "app/live_table.h"
#include "app/recording.h"
#include "live/host/limits.h"
#include "live/host/mismatches.h"
#include "live/host/plans.h"
#include "live/host/progress_file.h"
#include "live/host/report.h"
#include "live/host/shortfall.h"

namespace hw::app {
namespace {

using namespace hw::core;

struct TrainArguments {
    std::vector<std::string> words, command;
    live::LimitWords limits;
    std::string report, progress;
    live::LivePlanFrom from;
};

/// The session, and its plans: files, or those in a folder by their names.
Result<live::LivePlanFrom> plansOf(const TrainArguments& arguments) {
    live::LivePlanFrom from = arguments.from;
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

/// Where the program was refused memory because of a limit. Its own status says what has become of
/// it only where it has ended by a --cap, which stands for a smaller machine.
std::optional<Error> refusal(const live::LiveSummary& summary, const live::LimitWords& words,
                             const std::optional<Bytes>& limit) {
    if (summary.shortage.empty() || !limit || words.onOom || summary.running) return std::nullopt;
    const bool budget = !words.budget.empty();
    if (summary.exitStatus != 0 && !budget) return std::nullopt;
    const std::string within = " within " + humanBytes(*limit);
    return Error{
        ErrorCode::NoPlan,
        (summary.exitStatus != 0 ? "the program did not get through" + within
                                 : "the program was refused memory" + within +
                                       " and went on without it: its results may be others") +
            ": " + summary.shortage,
        budget ? "give a larger --budget" : "give a larger --cap"};
}

int run(const TrainArguments& arguments, const Common& common) {
    if (arguments.command.empty())
        return fail({ErrorCode::Usage, "no program to train",
                     "write -- before the program: highwater train SESSION PLAN -- python3 "
                     "train.py, or highwater train --budget 20GB -- python3 train.py"});
    if (arguments.limits.any() && !arguments.words.empty())
        return fail(
            {ErrorCode::Usage,
             arguments.limits.onOom ? "--on-oom and a plan at once" : "a budget and a plan at once",
             "give either a session with its plan, or --budget, or --on-oom"});
    const auto limits = live::limitsOf(arguments.limits, !arguments.words.empty());
    if (!limits) return fail(limits.error());
    std::vector<live::LivePlan> plans;
    std::optional<live::OtherKinds> others;
    if (!arguments.words.empty()) {
        auto from = plansOf(arguments);
        if (!from) return fail(from.error());
        auto prepared = from->fromStart ? prepare(*from) : live::prepareFirst(*from);
        if (!prepared) return fail(prepared.error());
        plans = std::move(*prepared);
        if (!from->fromStart) others.emplace(plans, noteToTerminal);
    }
    live::TrainOptions options;
    options.command = arguments.command;
    for (const live::LivePlan& plan : plans) options.programs.push_back(plan.programs);
    if (others) options.others = &*others;
    options.limits = *limits;
    for (const live::LivePlan& plan : plans) options.limits.stableSources = plan.stableSources;
    options.childStdoutToStderr = common.json;
    live::ProgressFile progress;
    if (const Status opened = progress.open(arguments.progress); !opened)
        return fail(opened.error());
    live::ShortfallTeller shortfall(plans, limits->cap, noteToTerminal);
    options.curves = progress.wanted();
    options.onStep = [&](const live::LiveStep& step) {
        shortfall.step(step);
        progress.step(step);
    };
    auto summary = live::train(options, toTerminal);
    others.reset();
    if (!summary) return fail(summary.error());
    if (!plans.empty()) keepInSession(arguments.words.front(), *summary, plans);
    if (!summary->shortage.empty() && !common.json)
        std::cerr << "highwater: memory was refused: " << summary->shortage << '\n';
    const Json report = live::liveReport(*summary, plans, limits->cap);
    Status reported = tellReport(*summary, report, arguments.report, common);
    if (const Status ended = progress.ended(report); reported && !ended) reported = ended;
    if (const auto wrong = live::mismatchError(report["mismatches"])) return fail(*wrong);
    if (const auto error = refusal(*summary, arguments.limits, limits->cap)) return fail(*error);
    if (summary->running)
        std::cerr << "highwater: no plan acts in the program any more; it goes on\n";
    const int status =
        summary->running ? profiler::exitStatusOf(summary->running->wait()) : summary->exitStatus;
    if (reported) return status;
    const int failed = fail(reported.error());
    return status == 0 ? failed : status;
}

}  // namespace

void addTrain(CLI::App& app, Common& common) {
    auto* command = addCommand(
        app, common, "train",
        "Start a training program and carry a plan out in it: less memory, the same bits");
    auto arguments = std::make_shared<TrainArguments>();
    addLimits(*command, arguments->limits);
    command->add_option("--cap", arguments->limits.cap,
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

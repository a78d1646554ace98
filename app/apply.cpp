// SPDX-License-Identifier: GPL-3.0-or-later
#include "live/host/apply.h"

#include <iostream>

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

struct ApplyArguments {
    pid_t pid = 0;
    live::LivePlanFrom from;
    live::LimitWords limits;
    double patience = 60;  // seconds
    std::string report, progress;
};

core::Result<std::vector<live::LivePlan>> plansOf(const ApplyArguments& arguments) {
    const bool planned = !arguments.from.session.empty();
    if (planned == arguments.limits.any())
        return core::Error{core::ErrorCode::Usage,
                           planned ? "a plan and a budget or --on-oom at once"
                                   : "nothing to apply to process " + std::to_string(arguments.pid),
                           "give either a session with its plan, or --budget, or --on-oom"};
    if (!planned) return std::vector<live::LivePlan>();
    if (arguments.from.plans.empty())
        return core::Error{core::ErrorCode::Usage, "a plan is needed beside its session",
                           "write: highwater apply PID SESSION PLAN"};
    return prepare(arguments.from);
}

int runApply(const ApplyArguments& arguments, const Common& common) {
    const auto plans = plansOf(arguments);
    if (!plans) return fail(plans.error());
    const auto limits = live::limitsOf(arguments.limits, !plans->empty());
    if (!limits) return fail(limits.error());
    live::ApplyOptions options;
    options.pid = arguments.pid;
    options.limits = *limits;
    for (const live::LivePlan& plan : *plans) options.programs.push_back(plan.programs);
    options.patience = std::chrono::duration<double>(arguments.patience);
    live::ProgressFile progress;
    if (const core::Status opened = progress.open(arguments.progress); !opened)
        return fail(opened.error());
    live::ShortfallTeller shortfall(*plans, limits->cap, noteToTerminal);
    options.curves = progress.wanted();
    options.onStep = [&](const live::LiveStep& step) {
        shortfall.step(step);
        progress.step(step);
    };
    const auto summary = live::apply(options, toTerminal);
    if (!summary) return fail(summary.error());
    if (!plans->empty()) keepInSession(arguments.from.session, *summary, *plans);
    if (!arguments.limits.budget.empty() && !summary->shortage.empty())
        std::cerr << "note: live bytes went above the budget: " << summary->shortage << '\n';
    const Json report = live::liveReport(*summary, *plans, limits->cap);
    core::Status reported = tellReport(*summary, report, arguments.report, common);
    if (const core::Status ended = progress.ended(report); reported && !ended) reported = ended;
    if (const auto wrong = live::mismatchError(report["mismatches"])) return fail(*wrong);
    return reported ? 0 : fail(reported.error());
}

int runRelease(pid_t pid, const Common& common) {
    if (const core::Status done = live::release(pid); !done) return fail(done.error());
    if (common.json)
        answerWith({{"pid", pid}});
    else
        std::cerr << "highwater: no plan acts in process " << pid << " any more\n";
    return 0;
}

}  // namespace

void addApply(CLI::App& app, Common& common) {
    auto* command = addCommand(app, common, "apply",
                               "Carry a plan out in a training process that runs already, or keep "
                               "it within a budget, from its next step on");
    auto arguments = std::make_shared<ApplyArguments>();
    command->add_option("PID", arguments->pid, "The process; see 'highwater ps'")->required();
    command->add_option("SESSION", arguments->from.session,
                        "A recording of it ('highwater attach'), or of the same program");
    command->add_option("PLAN", arguments->from.plans, "The plan file")->expected(0, 1);
    addLimits(*command, arguments->limits);
    command->add_option("--step", arguments->from.step,
                        "The step that the plan is for (default: the last complete one)");
    command
        ->add_option("--patience", arguments->patience,
                     "Seconds to wait for a safe point in the process (default: 60)")
        ->check(positive(kMostSeconds));
    command->add_option("--report", arguments->report, "Write what was measured to this JSON file");
    command->add_option("--progress", arguments->progress, kProgressHelp);
    command->callback([arguments, &common] { common.exitCode = runApply(*arguments, common); });
}

void addRelease(CLI::App& app, Common& common) {
    auto* command = addCommand(app, common, "release",
                               "Take the plan out of a process that 'apply' has brought it to");
    auto pid = std::make_shared<pid_t>(0);
    command->add_option("PID", *pid, "The process")->required();
    command->callback([=, &common] { common.exitCode = runRelease(*pid, common); });
}

}  // namespace hw::app

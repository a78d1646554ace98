// SPDX-License-Identifier: GPL-3.0-or-later
#include <iostream>

#include "app/cli.h"
#include "app/menu.h"

namespace hw::app {
namespace {

using namespace hw::core;

struct CheckArguments {
    std::string file, plan;
    std::optional<std::int64_t> step;
    MenuArguments menu;
};

int run(const CheckArguments& arguments, const Common& common) {
    const auto plan = readPlanFile(arguments.plan);
    if (!plan) return fail(plan.error());
    auto step = loadStep(arguments.file, arguments.step, plan->costs);
    if (!step) return fail(step.error());
    const auto graph = judgedGraph(*plan, *step, arguments.menu);
    if (!graph) return fail(graph.error());

    const Evaluation judged = evaluate(*graph, plan->schedule);
    const bool within = judged.valid && judged.peak <= plan->budget;
    const bool asPredicted =
        judged.valid && judged.peak == plan->predictedPeak && judged.time == plan->predictedTime;
    if (common.json) {
        Json json{{"valid", judged.valid},
                  {"within_budget", within},
                  {"peak_bytes", judged.peak.count()},
                  {"time_ns", judged.time.count()},
                  {"overhead", ratio(judged.time, step->graph.totalTime())},
                  {"budget_bytes", plan->budget.count()},
                  {"host_peak_bytes", judged.hostPeak.count()},
                  {"offloaded_bytes", judged.offloadedBytes.count()},
                  {"waited_ns", judged.waited.count()},
                  {"as_predicted", asPredicted}};
        if (!judged.valid) json["action"] = judged.action, json["why"] = judged.why;
        answerWith(json);
    }
    if (const Status valid = requireValid(judged); !valid) return fail(valid.error());
    if (!within)
        return fail({ErrorCode::NoPlan,
                     "the plan's peak is " + humanBytes(judged.peak) + ", its budget " +
                         humanBytes(plan->budget),
                     "plan again with the budget that you have"});
    if (!asPredicted)
        std::cerr << "note: the file promises " << humanBytes(plan->predictedPeak) << " and "
                  << humanTime(plan->predictedTime) << ", the judge finds "
                  << humanBytes(judged.peak) << " and " << humanTime(judged.time) << '\n';
    if (!common.json)
        std::cout << "valid, within the budget: peak " << humanBytes(judged.peak) << " of "
                  << humanBytes(plan->budget) << ", step time "
                  << percent(ratio(judged.time, step->graph.totalTime())) << '\n';
    return 0;
}

}  // namespace

void addCheck(CLI::App& app, Common& common) {
    auto* command = addCommand(app, common, "check", "Replay a plan under the judge");
    auto arguments = std::make_shared<CheckArguments>();
    command->add_option("SESSION", arguments->file, "The session or file that it was made from")
        ->required();
    command->add_option("PLAN", arguments->plan, "The plan file")->required();
    addMenu(*command, arguments->menu);
    command->add_option("--step", arguments->step, "The step (default: the last complete one)");
    command->callback([arguments, &common] { common.exitCode = run(*arguments, common); });
}

}  // namespace hw::app

// SPDX-License-Identifier: GPL-3.0-or-later
// Plans steps of a program that trains within a budget: `train` and `apply` start these beside it
// (live/host/planner_pool.h). Not for people.
#include <sys/resource.h>

#include "app/cli.h"
#include "live/host/planner_task.h"

namespace hw::app {
namespace {

void addTask(CLI::App& command, live::PlannerTask& task) {
    command.add_option("--budget", task.budget)->required();
    command.add_option("TRACE", task.trace)->required();
    command.add_option("KIND", task.kind)->required();
    command.add_option("FOLDER", task.folder)->required();
}

/// The program that trains comes first.
void yieldToAll() {
    constexpr int kLowestPriority = 19;
    setpriority(PRIO_PROCESS, 0, kLowestPriority);
}

}  // namespace

void addPlanStep(CLI::App& app, Common& common) {
    auto* command = app.add_subcommand("plan-step")->group("");
    auto task = std::make_shared<live::PlannerTask>();
    auto planner = std::make_shared<std::string>();
    addTask(*command, *task);
    command->add_option("--planner", *planner)->required();
    command->callback([task, planner, &common] {
        yieldToAll();
        const core::Status done = live::planStep(*task, *planner);
        common.exitCode = done ? 0 : fail(done.error());
    });
}

void addPlanRegion(CLI::App& app, Common& common) {
    auto* command = app.add_subcommand("plan-region")->group("");
    auto task = std::make_shared<live::PlannerTask>();
    addTask(*command, *task);
    command->callback([task, &common] {  // the program waits
        const core::Status done = live::planRegion(*task);
        common.exitCode = done ? 0 : fail(done.error());
    });
}

void addPlanSizes(CLI::App& app, Common& common) {
    auto* command = app.add_subcommand("plan-sizes")->group("");
    auto task = std::make_shared<live::PlannerTask>();
    addTask(*command, *task);
    command->callback([task, &common] {
        yieldToAll();
        const core::Status done = live::planBySize(*task);
        common.exitCode = done ? 0 : fail(done.error());
    });
}

}  // namespace hw::app

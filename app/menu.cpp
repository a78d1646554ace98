// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/menu.h"

#include "core/plan/implementations.h"
#include "core/session/load_menu.h"
#include "planners/monet/menu.h"

namespace hw::app {

using namespace hw::core;

namespace {

Result<Menu> menuOf(const MenuArguments& arguments, LoadedStep& step) {
    return arguments.file.empty() ? loadMenu(step.session, step.graph)
                                  : readMenuFile(arguments.file, step.graph);
}

}  // namespace

void addMenu(CLI::App& command, MenuArguments& arguments) {
    command.add_option("--menu", arguments.file,
                       "Implementations of ops to choose from, a JSON file (default: those that "
                       "the session holds)");
}

void addUse(CLI::App& command, MenuArguments& arguments) {
    command.add_option("--use", arguments.use,
                       "Kinds of implementations: algorithms, output-activated, intermediate, "
                       "in-place, separated by commas, or none (default: all)");
}

Status requestMenu(const MenuArguments& arguments, LoadedStep& step,
                   planners::PlanRequest& request) {
    if (const auto kinds = planners::parseKinds(arguments.use); !kinds) return kinds.error();
    if (!arguments.use.empty()) request.options["use"] = arguments.use;
    auto menu = menuOf(arguments, step);
    if (!menu) return menu.error();
    request.menu = std::move(*menu);
    return {};
}

Result<TrainingGraph> judgedGraph(const Plan& plan, LoadedStep& step,
                                  const MenuArguments& arguments) {
    if (plan.implementations.empty() && arguments.file.empty())
        return graphUnder(plan, step.graph, {});
    const auto menu = menuOf(arguments, step);
    if (!menu) return menu.error();
    return graphUnder(plan, step.graph, *menu);
}

}  // namespace hw::app

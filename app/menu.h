// SPDX-License-Identifier: GPL-3.0-or-later
// Implementations that `plan`, `sweep` and `check` may use, and where they come from.
#pragma once

#include <string>

#include "app/cli.h"
#include "core/plan/menu.h"

namespace hw::app {

struct MenuArguments {
    std::string file, use;
};

/// --menu.
void addMenu(CLI::App& command, MenuArguments& arguments);
/// --use.
void addUse(CLI::App& command, MenuArguments& arguments);

/// Fills the request's menu, from the file given, else from the session's table of implementations,
/// and its option `use`. Errors: Usage for --use, BadInput for a malformed menu.
core::Status requestMenu(const MenuArguments& arguments, LoadedStep& step,
                         planners::PlanRequest& request);

/// The graph that the judge needs for a plan: its implementations are looked up in the file given,
/// in the session's table, then in the plan itself. Errors: as core::graphUnder().
core::Result<core::TrainingGraph> judgedGraph(const core::Plan& plan, LoadedStep& step,
                                              const MenuArguments& arguments);

}  // namespace hw::app

// SPDX-License-Identifier: GPL-3.0-or-later
// Implementations that `plan`, `sweep` and `check` may use, and where they come from.
#pragma once

#include <map>
#include <string>

#include "app/cli.h"
#include "core/plan/implementations.h"

namespace hw::app {

struct MenuArguments {
    std::string file, use;
};

/// --menu.
void addMenu(CLI::App& command, MenuArguments& arguments);
/// --use.
void addUse(CLI::App& command, MenuArguments& arguments);

/// Fills the planner's options `menu` and `use`: from the file given, else from the session's table
/// of implementations where it has rows. Errors: Usage for --use, BadInput for a malformed menu.
core::Status setMenuOptions(const MenuArguments& arguments, LoadedStep& step,
                            std::map<std::string, std::string>& options);

/// The graph that the judge needs for a plan: its implementations are looked up in the file given,
/// in the session's table, then in the plan itself. Errors: as core::graphUnder().
core::Result<core::TrainingGraph> judgedGraph(const core::Plan& plan, LoadedStep& step,
                                              const MenuArguments& arguments);

}  // namespace hw::app

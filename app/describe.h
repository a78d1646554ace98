// SPDX-License-Identifier: GPL-3.0-or-later
// The command line in other forms: made from its own descriptions, so that they cannot differ.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace hw::app {

/// The commands that people use; the others are called by Highwater itself.
std::vector<const CLI::App*> commandsOf(const CLI::App& app);

/// A manual page, as roff: of everything, and of one command.
std::string manualOf(const CLI::App& app);
std::string manualOfCommand(const CLI::App& command);

/// What makes a shell complete commands and options: "bash", "zsh" or "fish"; empty for others.
std::string completionOf(const CLI::App& app, const std::string& shell);

}  // namespace hw::app

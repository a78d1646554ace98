// SPDX-License-Identifier: GPL-3.0-or-later
// What the command line says before it is parsed: which program is to be started, which file to be
// opened.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace hw::app {

/// `highwater FILE` is `highwater view FILE`: no command has a dot or a slash in its name.
bool namesFile(const std::string& word);

/// Takes the program that is to be started, and its arguments, off the arguments: what follows
/// "--". `record` needs none: there the program begins at the first word that is neither an option
/// nor the value of one.
std::vector<std::string> takeProgram(const CLI::App& app, std::vector<std::string>& arguments);

/// The command that was probably meant; empty where none is like it.
std::string nearestCommand(const CLI::App& app, const std::string& word);

}  // namespace hw::app

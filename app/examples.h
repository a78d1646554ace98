// SPDX-License-Identifier: GPL-3.0-or-later
// Examples at the end of each command's help and in its part of the manual page.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace hw::app {

/// Of that command, a line each.
const std::vector<std::string>& examplesOf(const std::string& command);
/// To every command that has some.
void addExamples(CLI::App& app);

}  // namespace hw::app

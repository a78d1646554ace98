// SPDX-License-Identifier: GPL-3.0-or-later
// What the command line says before it is parsed: which program is to be started, which file to be
// opened.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"

namespace hw::app {

/// `highwater FILE` is `highwater view FILE`: no command has a dot or a slash in its name.
bool namesFile(const std::string& word);

/// Takes the program that is to be started, and its arguments, off the arguments: what follows
/// "--". `record` needs none: there the program begins at the first word that is neither an option
/// nor the value of one.
std::vector<std::string> takeProgram(const CLI::App& app, std::vector<std::string>& arguments);

/// `highwater help plan` is `highwater plan --help`.
void askForHelp(const CLI::App& app, std::vector<std::string>& arguments);

/// A hint for a word that is no command: the one that was probably meant.
std::string hintFor(const CLI::App& app, const std::string& word);

/// An error of the parser's, in words that someone who knows no parser understands. `help`: the
/// command that prints more.
core::Error inOurWords(const CLI::ParseError& error, const std::string& help);

/// What a command does not know among its arguments: an option, with the one that was probably
/// meant, or a word. None: it knows them all.
std::optional<core::Error> notKnown(const CLI::App& command,
                                    const std::vector<std::string>& arguments);

}  // namespace hw::app

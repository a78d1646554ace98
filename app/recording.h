// SPDX-License-Identifier: GPL-3.0-or-later
// What `record` and `attach` have in common on the command line.
#pragma once

#include "app/cli.h"
#include "profiler/attach/recording.h"

namespace hw::app {

/// Adds what both take; returns --steps.
CLI::Option* addCaptureOptions(CLI::App& command, profiler::CaptureOptions& options);
/// Prints what was recorded, as JSON with `own` keys behind the common ones; the exit code.
int tell(const profiler::RecordSummary& summary, const Json& own, const Common& common);
/// One line of progress.
void toTerminal(const std::string& line);
/// The same of what a person is to know.
void noteToTerminal(const std::string& line);

}  // namespace hw::app

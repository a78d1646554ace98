// SPDX-License-Identifier: GPL-3.0-or-later
// What `train` and `apply` have in common on the command line.
#pragma once

#include "app/cli.h"
#include "live/host/limits.h"

namespace hw::app {

/// --budget, --on-oom, --partition, --planner and --verify.
void addLimits(CLI::App& command, live::LimitWords& words);

inline constexpr const char* kProgressHelp =
    "Append a line of JSON to this file for each step as it ends (docs/train.md)";

}  // namespace hw::app

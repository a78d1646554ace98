// SPDX-License-Identifier: GPL-3.0-or-later
// What `train` and `apply` have in common on the command line where no plan of a session acts: a
// budget, or the rescue of allocations that fail.
#pragma once

#include <string>

#include "app/cli.h"
#include "profiler/attach/live_run.h"

namespace hw::app {

struct LimitWords {
    std::string budget, cap, planner, verify;  // empty: not given
    bool onOom = false;

    /// DTR is to act.
    bool any() const { return !budget.empty() || onOom; }
};

/// --budget, --on-oom, --planner and --verify.
void addLimits(CLI::App& command, LimitWords& words);

/// `planned`: a plan of a session acts. Errors: Usage (no number of bytes, no such planner, one
/// that does not go with --on-oom, --verify where nothing is recomputed).
core::Result<profiler::LiveLimits> limitsOf(const LimitWords& words, bool planned);

}  // namespace hw::app

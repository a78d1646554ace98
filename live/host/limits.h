// SPDX-License-Identifier: MIT
// What a training process is held to where no plan of a session acts: a budget, or the rescue of
// allocations that fail; as a person gives it, in words.
#pragma once

#include <string>

#include "core/base/result.h"
#include "live/host/live_run.h"

namespace hw::live {

struct LimitWords {
    std::string budget, cap, planner, verify;  // empty: not given
    bool onOom = false;
    bool partition = false;  // see LiveLimits

    /// DTR is to act.
    bool any() const { return !budget.empty() || onOom; }
};

/// `planned`: a plan of a session acts. Errors: Usage (no number of bytes, no such planner, one
/// that does not go with --on-oom, --verify where nothing is recomputed, --partition without
/// planners).
core::Result<LiveLimits> limitsOf(const LimitWords& words, bool planned);

}  // namespace hw::live

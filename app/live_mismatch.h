// SPDX-License-Identifier: GPL-3.0-or-later
// What a live run has recomputed with other bytes than those that were dropped.
#pragma once

#include <optional>

#include "app/cli.h"
#include "app/live_plan.h"
#include "profiler/attach/live_run.h"

namespace hw::app {

/// [{op, name, layer, line, bytes, kind}], `layer` and `line` null where they are not known.
/// `plan`: null where the process has none.
Json mismatchesOf(const profiler::LiveProcess& process, const LivePlan* plan);

/// The error that ends the run; none: there was no mismatch. `rows`: those of all processes.
std::optional<core::Error> mismatchError(const Json& rows);

/// How much is compared: "full", "sampled", "off" or "" (default).
core::Result<std::uint32_t> verifyFlags(const std::string& word);

}  // namespace hw::app

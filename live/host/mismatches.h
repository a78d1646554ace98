// SPDX-License-Identifier: MIT
// What a live run has recomputed with other bytes than those that were dropped.
#pragma once

#include <optional>

#include "live/host/json.h"
#include "live/host/live_run.h"
#include "live/host/plans.h"

namespace hw::live {

/// [{op, name, layer, line, bytes, kind}], `layer` and `line` null where they are not known.
/// `plan`: null where the process has none.
Json mismatchesOf(const LiveProcess& process, const LivePlan* plan);

/// The error that ends the run; none: there was no mismatch. `rows`: those of all processes.
std::optional<core::Error> mismatchError(const Json& rows);

}  // namespace hw::live

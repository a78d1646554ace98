// SPDX-License-Identifier: MIT
// What the steps of a live run came to.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "live/host/json.h"
#include "live/host/plans.h"

namespace hw::live {

/// "plan", "dtr", "mimose" or "none".
const char* liveModeName(profiler::wire::LiveMode mode);

/// As `rescues` of a report has it.
Json rescueOf(const profiler::wire::LiveRescueRecord& rescue);

/// Keeps each plan and what its steps came to in the session, where they stand beside what was
/// predicted. Errors: those of a session that cannot be written.
core::Status storeLive(const std::string& session, const LiveSummary& summary,
                       const std::vector<LivePlan>& plans);

/// What docs/train.md says. Of several ranks the first one's figures are the report's own, and
/// those of each stand under "ranks". `limit`: of live bytes, where there is one.
Json liveReport(const LiveSummary& summary, const std::vector<LivePlan>& plans,
                const std::optional<core::Bytes>& limit);

}  // namespace hw::live

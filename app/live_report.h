// SPDX-License-Identifier: GPL-3.0-or-later
// What the steps of a live run came to: a file, JSON or a table.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/cli.h"
#include "app/live_plan.h"

namespace hw::app {

/// "plan", "dtr", "mimose" or "none".
const char* liveModeName(profiler::wire::LiveMode mode);

/// As `rescues` of a report has it.
Json rescueOf(const profiler::wire::LiveRescueRecord& rescue);

/// Keeps each plan and what its steps came to in the session, where they stand beside what was
/// predicted. A session that cannot be written is left as it is, with a note on stderr.
void storeLive(const std::string& session, const profiler::LiveSummary& summary,
               const std::vector<LivePlan>& plans);

/// Writes the report to `file`, unless that is empty, and prints it: JSON to stdout or a table to
/// stderr. Of several ranks the first one's figures are the report's own, and those of each stand
/// under "ranks". Returns it. `limit`: of live bytes, where there is one.
Json reportLive(const profiler::LiveSummary& summary, const std::vector<LivePlan>& plans,
                const std::optional<core::Bytes>& limit, const std::string& file,
                const Common& common);

}  // namespace hw::app

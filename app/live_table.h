// SPDX-License-Identifier: GPL-3.0-or-later
// What the steps of a live run came to, as a table on the terminal.
#pragma once

#include <string>
#include <vector>

#include "app/cli.h"
#include "live/host/plans.h"

namespace hw::app {

/// Plans as programs for the training process; see live::prepareLive().
core::Result<std::vector<live::LivePlan>> prepare(const live::LivePlanFrom& from);

/// Keeps what the run came to in its session. One that cannot be written is left as it is, with a
/// note on stderr.
void keepInSession(const std::string& session, const live::LiveSummary& summary,
                   const std::vector<live::LivePlan>& plans);

/// The run's notes and its report (live/host/report.h): the latter to `file`, unless that is
/// empty, and as JSON to stdout or as a table to stderr. Errors: of writing the file.
core::Status tellReport(const live::LiveSummary& summary, const Json& report,
                        const std::string& file, const Common& common);

}  // namespace hw::app

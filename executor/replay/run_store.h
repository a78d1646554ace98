// SPDX-License-Identifier: MIT
// What a run leaves in the session.
#pragma once

#include <vector>

#include "core/base/result.h"
#include "core/graph/training_graph.h"
#include "core/session/session_writer.h"
#include "executor/replay/outcome.h"
#include "executor/replay/pipeline.h"

namespace hw::executor {

/// Of at least one value; the upper one of two in the middle.
core::Nanoseconds median(std::vector<core::Nanoseconds> values);

/// Replaces the measured figures of every op of the graph, of which there must be as many. In a
/// transaction of the session's. Errors: those of the session.
core::Status storeProfile(core::SessionWriter& session, const core::TrainingGraph& graph,
                          const Profile& profile);

/// Writes what was measured, the plan and the run into the session. Where that cannot be done, the
/// outcome says so: such a run is still a run.
void keepOutcome(const RunRequest& request, Outcome& outcome);

}  // namespace hw::executor

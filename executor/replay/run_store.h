// SPDX-License-Identifier: MIT
// What a run leaves in the session. The session must be open for writing, in a transaction.
#pragma once

#include <vector>

#include "core/base/result.h"
#include "core/graph/training_graph.h"
#include "core/memory/signature.h"
#include "core/plan/plan.h"
#include "core/session/session_writer.h"
#include "executor/replay/report.h"

namespace hw::executor {

/// Measured figures of the captured order, one an op.
struct Profile {
    core::Signatures signatures;
    std::vector<core::Bytes> workspaces;
    std::vector<core::Nanoseconds> times;  // median of the passes
};

/// Of at least one value; the upper one of two in the middle.
core::Nanoseconds median(std::vector<core::Nanoseconds> values);

/// Replaces the measured figures of every op of the graph. Errors: those of the session.
core::Status storeProfile(core::SessionWriter& session, const core::TrainingGraph& graph,
                          const Profile& profile);

/// Adds a run, and its plan (null: none) where the session does not hold it yet. Errors: those of
/// the session.
core::Status storeRun(core::SessionWriter& session, std::int64_t step, const core::Plan* plan,
                      std::int64_t recomputedOps, const Report& report);

}  // namespace hw::executor

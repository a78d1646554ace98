// SPDX-License-Identifier: MIT
// The allocation signatures that a profile run left in a session.
#pragma once

#include "core/base/result.h"
#include "core/graph/training_graph.h"
#include "core/memory/signature.h"
#include "core/session/session.h"

namespace hw::core {

/// Those of the ops of `graph`, which came from `session`; empty when the graph has captured costs
/// or no profile run has recorded any. Errors: BadInput when the session cannot be read.
Result<Signatures> loadSignatures(const Session& session, const TrainingGraph& graph);

}  // namespace hw::core

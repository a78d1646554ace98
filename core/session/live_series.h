// SPDX-License-Identifier: MIT
// The curve of live bytes of a step, as recorded. Private to core/session.
#pragma once

#include "core/session/database.h"
#include "core/session/rows.h"

namespace hw::core {

/// Writes the series "step N live" over seqs from the storages and ops in the session's tables and
/// from those that are packed: at an op, everything alive, its outputs and its workspace; at a
/// release, what remains. Its first sample is what was alive when the step began. Throws
/// DatabaseError.
void writeLiveSeries(Database& database, const StepRow& step, const StepContents& packed);

}  // namespace hw::core

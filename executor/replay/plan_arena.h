// SPDX-License-Identifier: MIT
// The arena that a schedule runs in: the plan's own where it still fits, packed again otherwise.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/plan/plan.h"
#include "executor/replay/arena_layout.h"

namespace hw::executor {

/// `signatures`: what ops allocate in this run, on `graph`, the one under the plan's
/// implementations; `stored`: what the session knew when the plan was laid out, or empty. Packs
/// anew, and tells in `notes`, where the plan's layout was made for other allocations or before any
/// were recorded. Errors: as arenaFromLayout().
core::Result<Arena> arenaOf(const core::Plan& plan, const core::TrainingGraph& graph,
                            const core::Signatures& signatures, const core::Signatures& stored,
                            core::Bytes alignment, std::vector<std::string>& notes);

}  // namespace hw::executor

// SPDX-License-Identifier: MIT
// A plan for one recorded step becomes what the training process carries out
// (live/wire/live_program.h).
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/graph/training_graph.h"
#include "core/plan/plan.h"
#include "core/session/rows.h"
#include "live/wire/live_program.h"

namespace hw::live {

struct LiveProgram {
    std::string bytes;      // of the wire format
    std::int64_t step = 0;  // of the session, that it is for
    std::int64_t recomputes = 0;
    std::int64_t drops = 0;
    core::Bytes kept;  // of storages that the plan drops and that could not be restored
};

/// `tensors`: of the session that the graph was read from. The program lets go of storages by
/// itself where it did when recorded: those frees become nothing. What the plan drops earlier is
/// dropped only where the plan's peak needs that (core/memory/defer_frees.h) and it can be made
/// again from constants for as long as the program may ask for it (docs/judge.md, versions); what
/// it keeps longer is held.
///
/// `can`: what the performer that it is for can do.
///
/// Errors: BadInput where the plan uses what a running program cannot be given (other
/// implementations, codecs that are not known, actions beyond `can`), with the op or the storage,
/// or where a tensor of the graph is not described.
core::Result<LiveProgram> liveProgram(
    const core::TrainingGraph& graph, const core::Plan& plan,
    const std::vector<core::TensorRow>& tensors,
    profiler::wire::LiveActions can = profiler::wire::kPlanActions);

}  // namespace hw::live

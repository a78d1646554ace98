// SPDX-License-Identifier: MIT
// What a plan takes beside the captured order, as a whole and op by op.
#pragma once

#include <vector>

#include "core/base/result.h"
#include "executor/replay/profile_run.h"
#include "executor/replay/report.h"

namespace hw::executor {

/// Medians of the passes.
struct Timing {
    core::Nanoseconds time, baselineTime;
    core::Nanoseconds interpreterPerOp;  // of the captured order, outside of kernels
    core::Bytes peak;                    // highest of the planned passes; 0 without a plan
    std::vector<OpFigures> ops;          // that the plan does otherwise, in captured order
};

/// Captured and planned passes in turn, so that both meet the same machine; `plan` and `graph`, the
/// one under its implementations, say what was predicted. Without `planned`: the captured order
/// alone. Errors: those of Interpreter::run().
core::Result<Timing> timeInTurn(const Execution& captured, const Execution* planned,
                                const core::Plan* plan, const core::TrainingGraph& graph,
                                int repeat);

}  // namespace hw::executor

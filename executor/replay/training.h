// SPDX-License-Identifier: MIT
// Several steps in a row: what one leaves in parameters, buffers, optimizer state and generators is
// what the next one starts from. Inputs are those of the recorded step, every time.
#pragma once

#include "core/base/result.h"
#include "executor/replay/profile_run.h"
#include "executor/replay/report.h"

namespace hw::executor {

/// The op whose first result is the loss: the last of the forward pass, before the last op of the
/// backward one, that makes a floating scalar first, one of a layer "(loss)" before others. kNone
/// when there is none.
core::OpIndex lossOp(const Step& step);

/// Trains `steps` steps unplanned and, with `planned`, as many under the plan, and compares every
/// loss and every element of what the last step leaves. Errors: those of Interpreter::run().
core::Result<Training> trainSteps(const Step& step, int steps, const Execution& unplanned,
                                  const Execution* planned);

}  // namespace hw::executor

// SPDX-License-Identifier: MIT
// The kernels behind the implementations of implementations.h.
#pragma once

#include "executor/replay/arguments.h"

namespace hw::executor {

/// Makes `op`, which is op `index` of `step`, run as the step has chosen: the op of an
/// implementation, or the gradient op that changes with one. Nothing where neither is the case.
/// Errors: BadInput when libtorch lacks the op that is needed, or runs on a GPU.
core::Status applyChosen(const Step& step, core::OpIndex index, CallableOp& op);

}  // namespace hw::executor

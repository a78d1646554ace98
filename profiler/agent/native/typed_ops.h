// SPDX-License-Identifier: MIT
// Ops that a hook sees as they are called, without their arguments on a stack first, which takes as
// long as all that the hook does. They are those whose C++ signature is one of the usual ones; any
// other op comes by boxed.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

namespace hw::profiler::native {

/// From now on the op comes by typed where there is a typed hook and its signature is a known one.
/// For good, and once an op.
void takeTyped(const c10::OperatorHandle& op);

}  // namespace hw::profiler::native

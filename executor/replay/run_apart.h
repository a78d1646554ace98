// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <string>

#include "executor/replay/outcome.h"
#include "executor/replay/pipeline.h"

namespace hw::executor {

/// runStep() in a process of its own, which has no rights but to compute (sandbox.h).
/// Errors: those of runStep(); Internal where the process was ended, with the signal.
core::Result<Outcome> runApart(const RunRequest& request,
                               const std::function<void(const std::string&)>& progress);

}  // namespace hw::executor

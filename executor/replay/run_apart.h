// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <string>

#include "executor/replay/outcome.h"
#include "executor/replay/pipeline.h"

namespace hw::executor {

/// runStep() in a process of its own, which has no rights but to compute (sandbox.h).
/// Errors: those of runStep(); BadInput where an op ended the process by a signal,
/// Internal where it was killed.
core::Result<Outcome> runApart(const RunRequest& request,
                               const std::function<void(const std::string&)>& progress);

}  // namespace hw::executor

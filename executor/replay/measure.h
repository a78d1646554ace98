// SPDX-License-Identifier: MIT
// Menus that are measured: what the step's ops take in time and memory under the implementations
// that the executor has.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/session/load_menu.h"
#include "executor/replay/interpreter.h"
#include "executor/replay/outcome.h"
#include "executor/replay/pipeline.h"
#include "executor/replay/verification.h"

namespace hw::executor {

struct MeasuredMenu {
    core::Menu menu;
    std::vector<core::ImplementationSignature> signatures;
    std::int64_t offered = 0;
    std::int64_t different = 0;   // left out: meant to keep every bit, and did not
    std::int64_t dominated = 0;   // left out: algorithms with no less time or workspace
    std::int64_t impossible = 0;  // left out: ruled out by what else reads or writes the storages
    std::vector<std::string> notes;
};

/// Runs the captured order once for each name of an implementation, with as many ops under it as go
/// together, so that every op meets the caches and the arena that it meets in the step. Times are
/// medians of `repeat` passes. One that is meant to keep every bit is left out when its results
/// differ from `reference` on this step, which must hold the captured run. Errors: those of
/// Interpreter.
core::Result<MeasuredMenu> measureImplementations(
    const Step& step, MemoryTracker& tracker, const Profile& captured, const Reference& reference,
    Offered offered, int repeat, const std::function<void(const std::string&)>& progress);

}  // namespace hw::executor

// SPDX-License-Identifier: MIT
// What a run says.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/units.h"
#include "executor/memory_tracker.h"
#include "executor/verification.h"

namespace hw::executor {

struct Report {
    std::string planner;        // "none" without a plan
    core::Bytes predictedPeak;  // the judge's
    core::Bytes measuredPeak;   // highest live bytes that the allocator saw under the plan
    core::Bytes baselinePeak;   // the same of the unplanned run
    core::Bytes arena, arenaLowerBound;
    core::Nanoseconds time, baselineTime;  // medians, comparison left out
    Figures figures;
    std::vector<Fallback> fallbacks;  // allocations that the arena could not serve
    core::Bytes residentSetPeak;      // of the process, libtorch and the verification included
    int threads = 0;
    std::vector<std::string> notes;
};

/// One JSON object with the keys of the `run` command.
std::string toJson(const Report& report);
/// The same for people.
std::string toText(const Report& report);
/// Peak of the resident set of this process; 0 where the system does not say.
core::Bytes residentSetPeak();

}  // namespace hw::executor

// SPDX-License-Identifier: MIT
// What the runtime tells the shim of a step. Python's side is generated
// (profiler/agent/wire_py.cmake).
#pragma once

#include <cstdint>

namespace hw::profiler::wire {

/// How a step has ended. Middle: it has not. Budget: under DTR; BySize: under the plan of its input
/// size.
enum class Boundary : int { Middle = 0, Planned = 1, Unplanned = 2, Budget = 3, BySize = 4 };

struct LiveFigures {
    std::int64_t recomputedOps = 0;
    std::int64_t restoredBytes = 0;
    std::int64_t pinnedBytes = 0;     // what the plan would drop and code past the dispatcher reads
    std::int64_t ops = 0;             // seen
    std::int64_t divergedAt = -1;     // op at which the plan was left; -1: it was not
    std::int64_t uncountedBytes = 0;  // of constants that the agent does not count
    std::int64_t begunNs = 0;         // where other ops came before the planned ones; else 0
    std::int64_t runtimeNs = 0;       // of the runtime's own work
    std::int64_t recomputedNs = 0;    // on the CPU
    std::int64_t evictions = 0;
    std::int64_t peak = 0;     // highest live bytes
    std::int64_t rescued = 0;  // 1: an allocation had failed, see LiveRescue
    std::int64_t nowNs = 0;
    std::int64_t verifiedBytes = 0;
    std::int64_t verificationNs = 0;
    std::int64_t uncomparedOps = 0;   // that ran again and are not deterministic
    std::int64_t offloadedBytes = 0;  // that left, copies in host memory standing for them
    std::int64_t waitedNs = 0;        // for such copies, and for what comes back
};

/// Allocations of a step that had failed.
struct LiveRescue {
    std::int64_t made = 0;        // after all
    std::int64_t refused = 0;     // all the same
    std::int64_t firstBytes = 0;  // that the first asked for
    std::int64_t freedBytes = 0;
    std::int64_t evictions = 0;
};

}  // namespace hw::profiler::wire

// SPDX-License-Identifier: MIT
// A schedule as a picture over time: which storages are resident at which step, and whether they
// were computed for the first time or rematerialized (as in the memory traces of the DTR paper).
#pragma once

#include <vector>

#include "core/graph/training_graph.h"
#include "core/plan/plan.h"

namespace hw::planners {

/// One computation of the schedule. Frees and codecs are no steps.
struct TraceStep {
    core::OpIndex op = core::kNone;
    bool recomputed = false;
    core::Nanoseconds begin;  // plan time
};

/// A stretch of steps [begin, end) during which a storage stays resident: from the step that makes
/// it to the last one before it is freed.
struct Lifetime {
    core::StorageIndex storage = core::kNone;
    std::int64_t begin = 0;
    std::int64_t end = 0;
    core::ActionKind by = core::ActionKind::Compute;  // that began it
};

struct ScheduleTrace {
    std::vector<TraceStep> steps;
    std::vector<Lifetime> lifetimes;  // by begin; constants, which no step makes, left out
    std::vector<Lifetime> standIns;   // by end: parts of them with only a stand-in resident
};

/// Of a valid schedule. A storage for which something stands in counts as resident.
ScheduleTrace traceOf(const core::TrainingGraph& graph, const core::Schedule& schedule);

}  // namespace hw::planners

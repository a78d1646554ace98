// SPDX-License-Identifier: MIT
// A schedule as a picture over time: which storages are resident at which step, and whether they
// were computed for the first time or rematerialized (as in the memory traces of the DTR paper).
#pragma once

#include <vector>

#include "core/graph/training_graph.h"
#include "core/plan/plan.h"

namespace hw::planners {

/// One computation of the schedule. Frees are no steps: they take no time.
struct TraceStep {
    core::OpIndex op = core::kNone;
    bool recomputed = false;
    core::Nanoseconds begin;  // plan time
};

/// A stretch of steps [begin, end) during which a storage stays resident: from the step that makes
/// it to the last one before it is freed.
struct Residency {
    core::StorageIndex storage = core::kNone;
    std::int64_t begin = 0;
    std::int64_t end = 0;
    bool recomputed = false;
};

struct ScheduleTrace {
    std::vector<TraceStep> steps;
    std::vector<Residency> residencies;  // by begin; constants, which no step makes, left out
};

/// Of a valid schedule: it is not judged again. An encoded storage counts as resident.
ScheduleTrace traceOf(const core::TrainingGraph& graph, const core::Schedule& schedule);

}  // namespace hw::planners

// SPDX-License-Identifier: MIT
// The one judge. evaluate() is the only code that says what a schedule's peak and time are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/units.h"
#include "core/graph/training_graph.h"
#include "core/plan/plan.h"

namespace hw::core {

struct Evaluation {
    bool valid = false;
    std::string why;         // invalid: what is wrong
    std::size_t action = 0;  // invalid: the first action that cannot be run
    Bytes peak;
    std::size_t peakAction = 0;  // the action during which the peak is reached
    Nanoseconds time;
    std::int64_t recomputedOps = 0;
    Bytes hostPeak;        // of copies in host memory
    Bytes offloadedBytes;  // copied there, all together
    Nanoseconds waited;    // for copies, out of `time`
};

/// One point of a schedule's memory curve.
struct MemoryPoint {
    Nanoseconds begin;  // plan time at which the action starts; frees take no time
    Nanoseconds end;
    Bytes during;  // resident + all outputs + workspace while it runs
    Bytes after;   // resident when it is done
    Bytes host;    // in host memory then
};

/// Replays `schedule` by the accounting rules: captured order of first computations (views may come
/// later), versions of inputs, duplicates of recomputed outputs charged while the op runs,
/// constants at their place, final tensors resident and defined at the end. Copies to and from host
/// memory take what the graph's link takes. Never throws; an impossible schedule comes back with
/// valid == false.
Evaluation evaluate(const TrainingGraph& graph, const Schedule& schedule);

/// The same replay, with the memory curve: one point an action.
Evaluation evaluate(const TrainingGraph& graph, const Schedule& schedule,
                    std::vector<MemoryPoint>& curve);

/// Error: Verification, where the schedule is invalid; which action and why.
Status requireValid(const Evaluation& judged);

/// Storages resident right before action `action` of a valid schedule, and those that it adds.
std::vector<StorageIndex> residentDuring(const TrainingGraph& graph, const Schedule& schedule,
                                         std::size_t action);

/// The captured order with every storage freed at its last external release.
Schedule baselineSchedule(const TrainingGraph& graph);

}  // namespace hw::core

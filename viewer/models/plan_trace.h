// SPDX-License-Identifier: GPL-3.0-or-later
// A plan's memory trace: which storage is resident when, first computed or rematerialized, as in
// Figures 7 to 10 of the DTR paper (Kirisame et al., ICLR 2021). Constants, which no step computes,
// have no row.
#pragma once

#include <QString>
#include <cstdint>
#include <vector>

#include "core/graph/training_graph.h"
#include "core/plan/plan.h"
#include "viewer/models/step_curve.h"

namespace hw::viewer {

/// A storage is in memory from the step that makes it (`begin`) up to step `end`, which it does not
/// see. Steps count (re)computations from 0.
struct TraceBar {
    std::int32_t row = 0;
    std::int32_t begin = 0, end = 0;
    core::ActionKind by = core::ActionKind::Compute;  // that began it
};

/// Where a phase begins: at its first op that is computed for the first time.
struct PhaseStart {
    std::int32_t step = 0;
    core::Phase phase = core::Phase::Unknown;
};

struct PlanTrace {
    std::vector<core::StorageIndex> rows;  // by the order of their birth
    std::vector<core::Bytes> below;        // bytes of all earlier rows; one more than rows
    std::vector<std::int32_t> rowOf;       // by storage; kNone for constants
    std::vector<std::int32_t> computed;    // by row: how often an op made it again
    std::vector<TraceBar> bars;            // by row, then by time
    std::vector<std::size_t> firstBar;     // by row; one more than rows
    std::vector<core::OpIndex> ops;        // by step
    std::vector<bool> recomputed;          // by step
    std::vector<core::Nanoseconds> begin;  // by step, in the plan's time; the last is its end
    std::vector<PhaseStart> phases;        // from the second one on: the first begins at step 0
    bool phasesGuessed = false;            // not recorded: the backward pass begins at its first
                                           // "…backward" op
    std::int32_t peakStep = 0;

    std::int32_t steps() const { return static_cast<std::int32_t>(ops.size()); }
    /// The step that runs at a time, clamped to the ends. Requires steps.
    std::int32_t stepAt(core::Nanoseconds time) const;
    /// The bar of a row during a step; null where the storage is not in memory.
    const TraceBar* barAt(std::int32_t row, std::int32_t step) const;
};

/// Of a valid schedule and its curve.
PlanTrace planTrace(const core::TrainingGraph& graph, const core::Schedule& schedule,
                    const StepCurve& curve);

}  // namespace hw::viewer

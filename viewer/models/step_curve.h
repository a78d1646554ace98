// SPDX-License-Identifier: GPL-3.0-or-later
// A schedule as a picture: what is resident, by band, while each op runs.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/units.h"
#include "core/graph/training_graph.h"
#include "core/plan/plan.h"
#include "viewer/models/bands.h"

namespace hw::viewer {

/// One op of a schedule while it runs (one Compute or Recompute, or one codec).
struct Moment {
    core::Nanoseconds begin, end;  // in the schedule's own time
    std::size_t action = 0;        // index into the schedule
    core::OpIndex op = core::kNone;
    bool recomputed = false;
    core::Bytes total;  // the judge's bytes while the op runs
    BandBytes byBand;   // sums to total; workspace has its own category
};

/// A storage that is resident during moments [first, last].
struct Lifetime {
    core::StorageIndex storage = core::kNone;
    std::int32_t first = 0, last = 0;
};

struct StepCurve {
    std::vector<Moment> moments;
    std::vector<Lifetime> lifetimes;
    core::Nanoseconds time;
    core::Bytes peak;
    std::size_t peakMoment = 0;  // first moment that reaches the peak

    /// The moment that runs at `time`, clamped to the ends. Requires moments.
    std::size_t momentAt(core::Nanoseconds time) const;
};

/// Replays a valid schedule by the judge's accounting rules, split by category.
StepCurve stepCurve(const core::TrainingGraph& graph, const core::Schedule& schedule);

/// What was measured at each captured op of a step under a plan, on the axis of the plan's own
/// curve: from the end of the op before, its recomputations with it. Empty where the plan has
/// another number of ops.
StepCurve measuredCurve(const StepCurve& plan, const std::vector<core::Bytes>& byOp);

/// Storages resident during a moment, the largest first, at most `limit`.
std::vector<core::StorageIndex> largestResident(const core::TrainingGraph& graph,
                                                const StepCurve& curve, std::size_t moment,
                                                std::size_t limit);

/// What to draw of moments that overlap [from, to] in `buckets` columns: every moment where they
/// are few, otherwise the lowest and the highest of each column, so no peak is lost. Ascending
/// indices, with one neighbour beyond either end. The bytes by band of an index belong to one
/// instant.
std::vector<std::size_t> visibleMoments(const StepCurve& curve, core::Nanoseconds from,
                                        core::Nanoseconds to, int buckets);

}  // namespace hw::viewer

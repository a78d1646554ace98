// SPDX-License-Identifier: MIT
// Where in the program's own order the actions of a plan belong, in two steps: each action finds
// its place (action_placement.cpp), then what the program may still ask for is kept restorable
// (restorable.cpp).
#pragma once

#include <limits>
#include <utility>
#include <vector>

#include "core/base/result.h"
#include "core/graph/training_graph.h"
#include "core/plan/plan.h"
#include "live/wire/live_program.h"

namespace hw::live {

struct PlacedAction {
    profiler::wire::LiveAction kind;
    std::int32_t target;
    core::ShortList<std::int32_t> outputs = {};
    bool cancelled = false;
    profiler::wire::LiveCodec codec = profiler::wire::LiveCodec::Mask;  // of Encode
    core::Bytes bytes = {};                                             // of Encode
};

/// What is done before and after each op that the program runs.
struct Placement {
    std::vector<std::vector<PlacedAction>> before, after;
    /// Let go of by the program right before the op.
    std::vector<std::vector<core::StorageIndex>> gone;
    std::vector<bool> keep;      // ops that may have to run again
    std::vector<bool> followed;  // storages that actions work on or such ops touch
    std::int64_t recomputes = 0, drops = 0;
    core::Bytes kept;  // of storages that the plan drops and that could not be restored
};

constexpr core::OpIndex kStepEnd = std::numeric_limits<core::OpIndex>::max();

/// All actions have a place. Whether the storages that they drop can be recomputed is not decided
/// yet.
struct DraftPlacement {
    /// A drop, and the last op before which the program may ask for what it took.
    struct Drop {
        core::StorageIndex storage;
        bool before;
        std::pair<core::OpIndex, std::size_t> place;
        core::OpIndex until;
    };

    Placement placement;
    std::vector<core::OpIndex> releasedAt;  // number of ops before the program releases it
    std::vector<core::OpIndex> expiry;      // last op before which it is there or can be made again
    std::vector<Drop> drops;
    std::vector<std::pair<core::OpIndex, core::StorageIndex>> holds;  // after which op, of what
};

/// Nothing makes it again: it stays as long as the program refers to it or the plan holds it.
bool isSource(const core::TrainingGraph& graph, core::StorageIndex storage);
/// Its bytes go by no op, see TrainingGraph::findUnseen().
bool isGathered(const core::Storage& storage);

/// Errors: BadInput where the plan encodes in a form that a running program cannot be given, or has
/// an op read signs for elements.
core::Result<DraftPlacement> placeActions(const core::TrainingGraph& graph, const core::Plan& plan);

/// Drops stay that the program can be given back for as long as it may ask for them; what is needed
/// for that is held, secured and kept to run again.
Placement keepRestorable(const core::TrainingGraph& graph, DraftPlacement draft);

}  // namespace hw::live

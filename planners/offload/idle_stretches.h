// SPDX-License-Identifier: MIT
// Where a schedule keeps a storage that nothing touches for a while: what may be away meanwhile.
#pragma once

#include <cstddef>
#include <vector>

#include "core/graph/training_graph.h"
#include "core/plan/plan.h"

namespace hw::planners {

struct IdleStretch {
    core::StorageIndex storage = core::kNone;
    std::size_t first = 0;   // action before which it may leave: the one after its last use
    std::size_t before = 0;  // action that touches it next; the schedule's size: the step's end
};

/// Of a valid schedule, by `before`: those of storages of at least `least` bytes that a copy in
/// host memory can stand in for. Left out are storages whose bytes code past the dispatcher may
/// read or write, and, in a recorded step, what comes before the first use of a constant that is
/// neither a parameter nor a state of an optimizer: a running program shows it only then.
std::vector<IdleStretch> idleStretches(const core::TrainingGraph& graph,
                                       const core::Schedule& schedule, core::Bytes least);

}  // namespace hw::planners

// SPDX-License-Identifier: MIT
// Which storages can be rebuilt, and until when: the static side of rematerialization.
//
// A storage is rebuilt by its creator and then its writers in captured order (rule 7). Each of
// those ops reads its inputs at the versions that they had when captured. Once a later op has
// written such an input, that version is gone, and the storage can never be rebuilt again.
#pragma once

#include <vector>

#include "core/base/lists.h"
#include "core/graph/training_graph.h"

namespace hw::core {

struct RebuildInfo {
    /// Storage may be evicted at any time and rebuilt whenever it is needed: its rebuild stays
    /// possible until its last use. Conservative: an op that writes several storages, or a
    /// constant, is never run again. Always false for constants.
    std::vector<bool> rematerializable;
    /// Of a storage that is not rematerializable: a writer, in captured order, before which it may
    /// be evicted and rebuilt all the same; from that op on it stays. A backward that writes over
    /// what the forward has saved is such an op. kNone where there is none, and for all others.
    std::vector<OpIndex> rebuildableBefore;
    /// Nothing makes the storage again, and others are rebuilt from it: a constant, or what an op
    /// has made that must not run again (Op::once) or that writes other storages as well.
    std::vector<bool> source;
    /// Last op, in captured order, that reads or writes the storage; the number of ops when it is
    /// alive at the end; kNone when nothing uses it.
    std::vector<OpIndex> lastUse;
    /// The judge lets a plan free a constant after its last use (rule 6). In the program itself it
    /// stays until the program lets go of it, as the last step's gradients do until they are set to
    /// none: it could not be made again if the step left the plan. Neither could another source, or
    /// what is unseen. By storage the last op that keeps its place before that; kNone for all else,
    /// and in graphs that no program was recorded for.
    std::vector<OpIndex> heldUntil;
    /// Last op before which a rebuild of anything may read the storage; at least lastUse and
    /// heldUntil.
    std::vector<OpIndex> neededUntil;
    /// Ops that touch the storage in captured order: creator, in-place writers and view makers.
    IndexLists chain;
};

RebuildInfo rebuildInfo(const TrainingGraph& graph);

}  // namespace hw::core

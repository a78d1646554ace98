// SPDX-License-Identifier: MIT
// The graph as planners that search see it: a line of stages, and items that are retained between
// them or not.
//
// A *stage* belongs to one op that keeps its captured place: first whatever the stage needs and
// lacks is recomputed, in captured order, then the op runs for the first time. One more stage
// stands for the end of the step, where the final tensors must be there. An *item* is a storage
// that can be rebuilt. Everything else (constants, storages that can never be rebuilt, storages of
// no bytes) stays from its birth to the last stage that may read it. A storage that can be rebuilt
// until some op writes it is an item up to that op, and stays from then on.
//
// *Lazy views* are ops that only look at one item: they have no stage, they run when a stage first
// reads them after the item was (re)built (accounting rule 1). Other views keep their place and
// belong to the chain that rebuilds their item.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/lists.h"
#include "core/graph/training_graph.h"

namespace hw::core {

using StageIndex = std::int32_t;
using ItemIndex = std::int32_t;

struct StageModel {
    /// `graph` must outlive the model.
    explicit StageModel(const TrainingGraph& graph);

    const TrainingGraph* graph;

    // Stages 0..ops: stage k runs stageOps[k]; the last one is the end of the step.
    std::vector<OpIndex> stageOps;
    std::vector<StageIndex> stageOf;  // per op; kNone for lazy views
    StageIndex end = 0;               // index of the end stage
    std::vector<Bytes> fixedBytes;    // per stage: what is there besides the items
    std::vector<Bytes>
        constantsAfter;  // per stage: constants that come into being right after its op

    // Items.
    std::vector<StorageIndex> storages;  // per item
    std::vector<ItemIndex> itemOf;       // per storage; kNone where it is not an item
    std::vector<Bytes> bytes;            // per item
    std::vector<StageIndex> born;        // per item: the stage whose op makes it
    /// Per item: the last stage that may read it, rebuilds included; `end` when it is final. Where
    /// it stays from an op on, that op's stage.
    std::vector<StageIndex> neededUntil;
    std::vector<bool> staysAfter;  // per item: it is not freed after that stage
    IndexLists uses;               // per item: stages whose op reads it, ascending
    IndexLists chain;              // per item: ops that rebuild it, in captured order
    IndexLists views;              // per item: lazy views of it
    /// Per storage: the last stage that may read it, rebuilds included, item or not; kNone: none.
    std::vector<StageIndex> storageNeededUntil;

    // Per op; the entry after the last op stands for the end stage.
    IndexLists inputs;             // items that it reads or writes, each once
    IndexLists outputs;            // items that it makes
    IndexLists lazyViews;          // lazy views that must be defined when it runs, parents first
    std::vector<Bytes> footprint;  // bytes of all its new storages + workspace
    std::vector<Bytes> newBytes;   // bytes of all its new storages
    std::vector<Nanoseconds> time;
    /// Lazy views that no op reads: they run once, right after the last op that they wait for.
    IndexLists unreadViews;  // per op: that wait for it

    std::size_t itemCount() const { return storages.size(); }
    /// Stage whose op the storage stays after until storageNeededUntil; kNone for constants and for
    /// items that need not stay.
    StageIndex staysFrom(StorageIndex storage) const;
    bool lazy(OpIndex op) const { return stageOf[op] == kNone; }
    OpIndex opOf(StageIndex stage) const {
        return stage == end ? static_cast<OpIndex>(graph->ops.size()) : stageOps[stage];
    }
};

}  // namespace hw::core

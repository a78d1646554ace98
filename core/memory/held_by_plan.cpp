// SPDX-License-Identifier: MIT
#include "core/memory/held_by_plan.h"

#include <algorithm>

#include "core/memory/replay.h"

namespace hw::core {
namespace {

// What the plan holds when forward has ended and what it frees right then is gone; an encoded form
// counts.
std::vector<bool> residentAtBackward(const TrainingGraph& graph, const Schedule& schedule) {
    ReplayListener silent;
    Replay replay(graph, silent);
    bool forwardDone = false;
    const OpIndex lastForward = lastForwardOp(graph);
    for (const Action& action : schedule) {
        if (forwardDone && action.takesTime()) break;
        if (!replay.step(action)) break;
        forwardDone |= action.kind == ActionKind::Compute && action.target == lastForward;
    }
    std::vector<bool> resident(graph.storages.size(), false);
    for (StorageIndex s = 0; s < static_cast<StorageIndex>(resident.size()); ++s)
        resident[s] = replay.resident(s) || replay.standIn(s);
    return resident;
}

}  // namespace

OpIndex lastForwardOp(const TrainingGraph& graph) {
    OpIndex last = kNone;
    for (OpIndex op = 0; op < static_cast<OpIndex>(graph.ops.size()); ++op) {
        if (graph.ops[op].phase == Phase::Backward) break;
        if (graph.ops[op].phase == Phase::Forward) last = op;
    }
    return last;
}

HeldByPlan heldByPlan(const TrainingGraph& graph, const Schedule& schedule) {
    HeldByPlan held;
    held.retained = residentAtBackward(graph, schedule);
    held.saves.assign(graph.ops.size(), false);
    held.recomputed = held.saves;
    for (const Action& action : schedule)
        if (action.recomputes()) held.recomputed[action.target] = true;
    held.wanted.assign(graph.storages.size(), false);
    for (std::size_t s = 0; s < graph.storages.size(); ++s) {
        const Storage& storage = graph.storages[s];
        if (storage.isConstant() || graph.ops[storage.creator].phase != Phase::Forward) continue;
        held.wanted[s] =
            storage.aliveAtEnd ||
            std::any_of(storage.readers.begin(), storage.readers.end(),
                        [&](OpIndex op) { return graph.ops[op].phase == Phase::Backward; });
        if (held.retained[s]) held.saves[storage.creator] = true;
    }
    // PyTorch refuses to cache what is written later: an op with such a result runs again.
    for (std::size_t s = 0; s < graph.storages.size(); ++s)
        for (const OpIndex op : graph.storages[s].writers)
            if (graph.ops[op].phase == Phase::Forward && !graph.storages[s].isConstant())
                held.saves[graph.storages[s].creator] = false;
    return held;
}

}  // namespace hw::core

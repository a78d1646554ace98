// SPDX-License-Identifier: MIT
#include "core/memory/lifetimes.h"

#include <algorithm>

#include "core/graph/captured_order.h"

namespace hw::core {

Lifetimes lifetimes(const TrainingGraph& graph, const RebuildInfo& info) {
    const std::size_t count = graph.storages.size();
    Lifetimes lives;
    lives.born.resize(count);
    lives.until.resize(count);
    lives.released.assign(count, kNone);
    for (std::size_t s = 0; s < count; ++s) lives.born[s] = graph.storages[s].creator;
    for (const ConstantStart& start : capturedOrder(graph).constants)
        lives.born[start.storage] = start.after;
    for (std::size_t s = 0; s < count; ++s)
        lives.until[s] = std::max({lives.born[s], info.lastUse[s], info.heldUntil[s]});
    OpIndex last = kNone;
    for (const Event& event : graph.events) {
        if (event.kind == Event::Kind::Compute) last = event.index;
        if (event.kind == Event::Kind::Release) lives.released[event.index] = last;
    }
    return lives;
}

MemoryByOp memoryByOp(const TrainingGraph& graph, const Lifetimes& lives) {
    const std::size_t ops = graph.ops.size();
    std::vector<Bytes> change(ops + 1);  // before op i, what came after the op before it included
    for (std::size_t s = 0; s < graph.storages.size(); ++s) {
        const Bytes bytes = graph.storages[s].bytes;
        change[static_cast<std::size_t>(lives.born[s]) + 1] += bytes;
        if (const auto until = static_cast<std::size_t>(lives.until[s]) + 1; until <= ops)
            change[until] -= bytes;
    }
    MemoryByOp memory;
    Bytes live = change[0];
    for (std::size_t i = 0; i < ops; ++i) {
        const Op& op = graph.ops[i];
        Bytes made = op.workspace;
        for (const OpOutput& output : op.outputs)
            if (output.makesStorage) made += graph.storages[graph.storageOf(output.tensor)].bytes;
        memory.during.push_back(live + made);
        live += change[i + 1];
        memory.after.push_back(live);
    }
    return memory;
}

}  // namespace hw::core

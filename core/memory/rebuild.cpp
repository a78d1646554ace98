// SPDX-License-Identifier: MIT
#include "core/memory/rebuild.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

namespace hw::core {
namespace {

IndexLists chains(const TrainingGraph& graph) {
    std::vector<IndexLists::Entry> entries;
    entries.reserve(graph.ops.size());
    std::vector<OpIndex> last(graph.storages.size(), kNone);
    const auto touches = [&](OpIndex op, StorageIndex s) {
        if (std::exchange(last[s], op) != op) entries.emplace_back(s, op);
    };
    for (OpIndex i = 0; i < static_cast<OpIndex>(graph.ops.size()); ++i) {
        for (const OpOutput& output : graph.ops[i].outputs)
            touches(i, graph.storageOf(output.tensor));
        for (const Write& write : graph.ops[i].writes) touches(i, write.storage);
    }
    return {graph.storages.size(), entries};
}

/// Whether the op writes anything but this storage: to run it again for this one would write the
/// others a second time.
bool writesOthers(const TrainingGraph& graph, const Op& op, StorageIndex s) {
    return op.writes.size() > 1 ||
           std::any_of(op.writes.begin(), op.writes.end(), [&](const Write& write) {
               return write.storage != s || graph.storages[write.storage].isConstant();
           });
}

// Made by an op that must not run again: it stays, as constants do, for what is rebuilt from it.
bool runsOnce(const TrainingGraph& graph, StorageIndex s, std::span<const OpIndex> chain) {
    return std::any_of(chain.begin(), chain.end(), [&](OpIndex op) {
        return graph.ops[op].once || writesOthers(graph, graph.ops[op], s);
    });
}

// First op after which one of the inputs of the storage's chain does not hold the version that was
// read; the number of ops when that never happens.
OpIndex directLimit(const TrainingGraph& graph, StorageIndex s, std::span<const OpIndex> chain) {
    auto limit = static_cast<OpIndex>(graph.ops.size());
    for (const OpIndex index : chain) {
        const Op& op = graph.ops[index];
        if (writesOthers(graph, op, s)) return 0;
        for (const Use& use : op.inputs) {
            const StorageIndex input = graph.storageOf(use.tensor);
            const ShortList<OpIndex>& writers = graph.storages[input].writers;
            if (input != s && use.version < static_cast<std::int32_t>(writers.size()))
                limit = std::min(limit, writers[use.version]);
        }
    }
    return limit;
}

// The storages that a rebuild of each reads: what passes over them many times does not go through
// the ops again.
IndexLists rebuildInputs(const TrainingGraph& graph, const IndexLists& chain) {
    IndexLists inputs;
    std::vector<StorageIndex> of;
    for (StorageIndex s = 0; s < static_cast<StorageIndex>(graph.storages.size()); ++s) {
        of.clear();
        if (!graph.storages[s].isConstant())
            for (const OpIndex index : chain[s])
                for (const Use& use : graph.ops[index].inputs)
                    if (const StorageIndex input = graph.storageOf(use.tensor); input != s)
                        of.push_back(input);
        inputs.append(of);
    }
    return inputs;
}

// The last op that keeps its place before the recorded program lets go of what cannot be made
// again.
std::vector<OpIndex> heldByProgram(const TrainingGraph& graph, const std::vector<bool>& source) {
    std::vector<OpIndex> until(graph.storages.size(), kNone);
    if (!graph.recorded) return until;
    OpIndex last = kNone;
    for (const Event& event : graph.events) {
        if (event.kind == Event::Kind::Compute && !graph.ops[event.index].viewOnly)
            last = event.index;
        if (event.kind == Event::Kind::Release &&
            (source[event.index] || graph.storages[event.index].unseen))
            until[event.index] = last;
    }
    return until;
}

}  // namespace

RebuildInfo rebuildInfo(const TrainingGraph& graph) {
    const std::size_t count = graph.storages.size();
    const auto never = static_cast<OpIndex>(graph.ops.size());
    RebuildInfo info;
    info.chain = chains(graph);
    info.lastUse.assign(count, kNone);
    std::vector<OpIndex> limit(count, never);
    for (StorageIndex s = 0; s < static_cast<StorageIndex>(count); ++s) {
        const Storage& storage = graph.storages[s];
        if (!storage.readers.empty()) info.lastUse[s] = storage.readers.back();
        if (!storage.writers.empty())
            info.lastUse[s] = std::max(info.lastUse[s], storage.writers.back());
        if (storage.aliveAtEnd) info.lastUse[s] = never;
        if (!storage.isConstant()) limit[s] = directLimit(graph, s, info.chain[s]);
    }
    info.source.resize(count);
    for (std::size_t s = 0; s < count; ++s)
        info.source[s] = graph.storages[s].isConstant() ||
                         runsOnce(graph, static_cast<StorageIndex>(s), info.chain[s]);
    const IndexLists inputs = rebuildInputs(graph, info.chain);
    // A rebuild may have to rebuild its inputs: limits pass on until nothing changes.
    for (bool changed = true; changed;) {
        changed = false;
        for (StorageIndex s = 0; s < static_cast<StorageIndex>(count); ++s)
            for (const StorageIndex input : inputs[s])
                if (!info.source[input] && limit[input] < limit[s])
                    limit[s] = limit[input], changed = true;
    }
    info.rematerializable.assign(count, false);
    for (StorageIndex s = 0; s < static_cast<StorageIndex>(count); ++s)
        info.rematerializable[s] =
            !info.source[s] &&
            (info.lastUse[s] < limit[s] || (info.lastUse[s] == never && limit[s] == never));

    // From what is rebuilt to what it reads, which mostly is older: all of a chain at once.
    info.neededUntil = info.lastUse;
    for (bool changed = true; changed;) {
        changed = false;
        for (auto s = static_cast<StorageIndex>(count); s-- > 0;) {
            if (!info.rematerializable[s]) continue;
            for (const StorageIndex input : inputs[s])
                if (info.neededUntil[input] < info.neededUntil[s])
                    info.neededUntil[input] = info.neededUntil[s], changed = true;
        }
    }
    info.heldUntil = heldByProgram(graph, info.source);
    for (std::size_t s = 0; s < count; ++s)
        info.neededUntil[s] = std::max(info.neededUntil[s], info.heldUntil[s]);
    return info;
}

}  // namespace hw::core

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

bool mustNotRunAgain(const TrainingGraph& graph, OpIndex op, StorageIndex s) {
    return graph.ops[op].once || writesOthers(graph, graph.ops[op], s);
}

// Until when each version of each storage can be rebuilt. Ops are taken in captured order: what one
// reads was made by those before it, so that its own limit is known.
class Limits {
public:
    explicit Limits(const TrainingGraph& graph)
        : graph_(graph),
          never_(static_cast<OpIndex>(graph.ops.size())),
          limit_(graph.storages.size(), never_),
          before_(graph.storages.size()),
          lastWriter_(graph.storages.size(), kNone),
          madeOnce_(graph.storages.size(), false) {
        std::vector<OpIndex> seen(graph.storages.size(), kNone);
        for (OpIndex i = 0; i < never_; ++i) {
            const auto touch = [&](StorageIndex s) {
                if (std::exchange(seen[s], i) != i) add(i, s);
            };
            for (const Write& write : graph.ops[i].writes) touch(write.storage);
            for (const OpOutput& output : graph.ops[i].outputs)
                touch(graph.storageOf(output.tensor));
        }
    }

    /// Last op before which the storage can be rebuilt to its last version; the number of ops when
    /// it always can.
    OpIndex ofLast(StorageIndex s) const { return limit_[s]; }
    /// Last writer before which the storage can be rebuilt to the version that it has then.
    OpIndex lastWriter(StorageIndex s) const { return lastWriter_[s]; }
    /// An op that must not run again has made it: it stays, as constants do, for what is rebuilt
    /// from it.
    bool madeOnce(StorageIndex s) const { return madeOnce_[s]; }

private:
    // The op belongs to the storage's chain.
    void add(OpIndex index, StorageIndex s) {
        const Op& op = graph_.ops[index];
        const bool writes = std::any_of(op.writes.begin(), op.writes.end(),
                                        [&](const Write& write) { return write.storage == s; });
        if (writes) {
            before_[s].push_back(limit_[s]);
            const bool made =
                index != graph_.storages[s].creator && !graph_.storages[s].isConstant();
            if (made && !madeOnce_[s] && index <= limit_[s]) lastWriter_[s] = index;
        }
        if (mustNotRunAgain(graph_, index, s)) madeOnce_[s] = true;
        for (const Use& use : op.inputs)
            if (const StorageIndex input = graph_.storageOf(use.tensor); input != s)
                limit_[s] = std::min(limit_[s], of(input, static_cast<std::size_t>(use.version)));
    }

    // Last op before which `version` can be read once more, by rebuilding it where it is gone.
    OpIndex of(StorageIndex s, std::size_t version) const {
        const ShortList<OpIndex>& writers = graph_.storages[s].writers;
        const OpIndex written = version < writers.size() ? writers[version] : never_;
        if (graph_.storages[s].isConstant() || madeOnce_[s]) return written;
        return std::min(written, version < before_[s].size() ? before_[s][version] : limit_[s]);
    }

    const TrainingGraph& graph_;
    const OpIndex never_;
    std::vector<OpIndex> limit_;                // per storage: of its present version
    std::vector<std::vector<OpIndex>> before_;  // per storage: of those before
    std::vector<OpIndex> lastWriter_;
    std::vector<bool> madeOnce_;  // by the ops of the chain so far
};

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
    for (StorageIndex s = 0; s < static_cast<StorageIndex>(count); ++s) {
        const Storage& storage = graph.storages[s];
        if (!storage.readers.empty()) info.lastUse[s] = storage.readers.back();
        if (!storage.writers.empty())
            info.lastUse[s] = std::max(info.lastUse[s], storage.writers.back());
        if (storage.aliveAtEnd) info.lastUse[s] = never;
    }
    info.source.resize(count);
    info.rematerializable.assign(count, false);
    info.rebuildableBefore.assign(count, kNone);
    const Limits limits(graph);
    for (StorageIndex s = 0; s < static_cast<StorageIndex>(count); ++s) {
        info.source[s] = graph.storages[s].isConstant() || limits.madeOnce(s);
        info.rematerializable[s] = !info.source[s] && info.lastUse[s] <= limits.ofLast(s);
        if (!info.rematerializable[s]) info.rebuildableBefore[s] = limits.lastWriter(s);
    }
    const IndexLists inputs = rebuildInputs(graph, info.chain);

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

// SPDX-License-Identifier: MIT
// What leaves for good: banished storages, and what nothing makes again in a recorded session.
#include "planners/dtr/runtime.h"

namespace hw::planners {

using namespace hw::core;

bool DtrRuntime::isSource(StorageIndex s) const {
    return graph_.storages[s].isConstant() || (settings_.keepSources && info_.source[s]);
}

// Sources of a recorded session leave after their release, once no rebuild can read them.
void DtrRuntime::planSourceFrees() {
    sourceFrees_.resize(graph_.ops.size());
    sourceNeeds_.assign(graph_.storages.size(), kNone);
    OpIndex done = kNone;
    for (const Event& event : graph_.events) {
        if (event.kind == Event::Kind::Compute) done = event.index;
        if (event.kind != Event::Kind::Release || !isSource(event.index)) continue;
        const OpIndex need = info_.neededUntil[event.index];
        sourceNeeds_[event.index] = need;
        if (need > done && need < static_cast<OpIndex>(graph_.ops.size()))
            sourceFrees_[need].push_back(event.index);
    }
}

void DtrRuntime::freeForGood(StorageIndex s) {
    if (at(s).gone) return;
    if (at(s).material) noteFreed(s);
    evictor_.banished(s);
}

void DtrRuntime::tryBanish(StorageIndex s) {
    toBanish_.assign(1, s);
    while (!toBanish_.empty()) {
        const StorageIndex candidate = toBanish_.back();
        toBanish_.pop_back();
        if (banishable(candidate)) banish(candidate);
    }
}

// Dead, unused at the moment, and nothing computed from it is evicted: what is gone itself does not
// count, it will never be computed again.
bool DtrRuntime::banishable(StorageIndex s) const {
    const DtrStorage& storage = at(s);
    if (!storage.dead || storage.gone || storage.locks > (storage.pinned ? 1 : 0)) return false;
    for (const OpIndex index : graph_.storages[s].readers) {
        if (index > now_) break;
        const Op& op = graph_.ops[index];
        for (const OpOutput& output : op.outputs) {
            const StorageIndex made = graph_.storageOf(output.tensor);
            if (made != s && !at(made).gone && !defined_.has(output.tensor)) return false;
        }
        for (const auto& [written, before] : op.writes) {
            const bool current = at(written).material && at(written).version > before;
            if (written != s && !at(written).gone && !current) return false;
        }
    }
    return true;
}

// Pins what was computed from `s`, for it cannot be computed again. What `s` was computed from has
// one dependent less and may follow.
void DtrRuntime::banish(StorageIndex s) {
    freeForGood(s);
    for (const OpIndex index : graph_.storages[s].readers) {
        if (index > now_) break;
        const Op& op = graph_.ops[index];
        for (const OpOutput& output : op.outputs)
            if (!at(graph_.storageOf(output.tensor)).gone)
                evictor_.pin(graph_.storageOf(output.tensor));
        for (const Write& write : op.writes)
            if (!at(write.storage).gone) evictor_.pin(write.storage);
    }
    evictor_.state().links.forEach(s, Ancestors,
                                   [&](StorageIndex parent) { toBanish_.push_back(parent); });
}

}  // namespace hw::planners

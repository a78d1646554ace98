// SPDX-License-Identifier: MIT
#include "planners/schedule/forward_pass.h"

#include <algorithm>
#include <span>

#include "core/memory/schedule_builder.h"
#include "planners/schedule/free_early.h"

namespace hw::planners {

using namespace hw::core;

ForwardPass::ForwardPass(const TrainingGraph& graph, const RebuildInfo& info)
    : graph_(graph), info_(info) {
    const auto backward = std::find_if(graph.ops.begin(), graph.ops.end(),
                                       [](const Op& op) { return op.phase == Phase::Backward; });
    end_ = static_cast<OpIndex>(backward - graph.ops.begin());
    for (OpIndex op = 0; op < end_; ++op)
        for (const OpOutput& output : graph.ops[op].outputs)
            if (output.makesStorage) storages_.push_back(graph.storageOf(output.tensor));
    std::vector<IndexLists::Entry> entries;
    std::vector<StorageIndex> reads;
    for (const StorageIndex s : storages_) {
        reads.clear();
        for (const OpIndex op : info.chain[s])
            for (const Use& use : graph.ops[op].inputs)
                if (const StorageIndex input = graph.storageOf(use.tensor); input != s && op < end_)
                    reads.push_back(input);
        std::sort(reads.begin(), reads.end());
        reads.erase(std::unique(reads.begin(), reads.end()), reads.end());
        for (const StorageIndex input : reads) entries.emplace_back(s, input);
    }
    reads_ = IndexLists(graph.storages.size(), entries);
}

bool ForwardPass::saved(StorageIndex s) const {
    const Storage& storage = graph_.storages[s];
    return !storage.isConstant() && storage.creator < end_ && info_.lastUse[s] >= end_;
}

OpIndex ForwardPass::lastForwardUse(StorageIndex s) const {
    OpIndex last = graph_.storages[s].creator;
    for (const std::span<const OpIndex> ops :
         {info_.chain[s], std::span(graph_.storages[s].readers)})
        for (const OpIndex op : ops)
            if (op < end_) last = std::max(last, op);
    return last;
}

// Last op before which anything may read a storage; what is recomputed itself has its own last use.
std::vector<OpIndex> ForwardPass::neededUntil(const RecomputeSet& set) const {
    std::vector<OpIndex> until = info_.lastUse;
    for (auto s = storages_.rbegin(); s != storages_.rend(); ++s)
        if (set[*s])
            for (const StorageIndex input : reads_[*s])
                until[input] = std::max(until[input], until[*s]);
    for (const StorageIndex s : storages_)
        if (set[s]) until[s] = info_.lastUse[s];
    for (std::size_t s = 0; s < until.size(); ++s)
        until[s] = std::max(until[s], info_.heldUntil[s]);
    return until;
}

Schedule ForwardPass::recompute(const RecomputeSet& set) const {
    std::vector<IndexLists::Entry> drops;
    for (const StorageIndex s : storages_)
        if (set[s] && saved(s)) drops.emplace_back(lastForwardUse(s), s);
    const IndexLists dropAfter(static_cast<std::size_t>(end_), drops);
    RebuildInfo held = info_;
    held.lastUse = neededUntil(set);
    held.neededUntil = held.lastUse;
    ScheduleBuilder builder(graph_, held);
    while (!builder.done()) {
        const OpIndex op = builder.next();
        builder.computeNext();
        if (op >= end_) continue;
        for (const StorageIndex s : dropAfter[op])
            if (builder.resident(s)) builder.drop(s);
    }
    return freeEarly(graph_, builder.finish());
}

}  // namespace hw::planners

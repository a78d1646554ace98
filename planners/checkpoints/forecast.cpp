// SPDX-License-Identifier: MIT
#include "planners/checkpoints/forecast.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/memory/evaluate.h"
#include "core/memory/schedule_builder.h"

namespace hw::planners {
namespace {

using namespace hw::core;

// The regions of one forecast, by op and storage.
class Simulation {
public:
    Simulation(const TrainingGraph& graph, const RebuildInfo& info, const HeldByPlan& held,
               const std::vector<CheckpointRegion>& regions)
        : graph_(graph), info_(info), held_(held), regions_(regions), builder_(graph, info) {
        placeOps();
        placeStorages();
    }

    std::optional<CheckpointForecast> run() {
        if (!allowed()) return std::nullopt;
        builder_.setLifetime([this](StorageIndex s) {
            return callOf_[s] == kNone && readInside_[s] ? ScheduleBuilder::Lifetime::Rebuilds
                                                         : ScheduleBuilder::Lifetime::LastUse;
        });
        const OpIndex last = lastForwardOp(graph_);
        while (!builder_.done()) {
            const OpIndex op = builder_.next();
            if (op > last) restoreFor(op);
            builder_.computeNext();
            for (const StorageIndex s : lastUsedBy_[op]) releaseIfUnneeded(s);
            if (op > last) continue;
            for (const StorageIndex s : droppedAfter_[op])
                if (builder_.resident(s)) builder_.drop(s);
        }
        const Evaluation judged = evaluate(graph_, builder_.finish());
        if (!judged.valid) return std::nullopt;
        return CheckpointForecast{judged.peak, judged.time};
    }

private:
    // PyTorch runs a call again on the inputs that it held: none may have been written since.
    bool allowed() const {
        std::vector<OpIndex> begin(end_.size(), kNone);
        for (std::size_t i = graph_.ops.size(); i-- > 0;)
            if (call_[i] != kNone) begin[call_[i]] = static_cast<OpIndex>(i);
        for (std::size_t call = 0; call < end_.size(); ++call)
            for (const StorageIndex s : readBy_[call]) {
                const Storage& storage = graph_.storages[s];
                if (storage.isConstant() || call_[storage.creator] == static_cast<int>(call))
                    continue;
                for (const OpIndex writer : storage.writers)
                    if (writer >= begin[call] && graph_.ops[writer].phase != Phase::Optimizer)
                        return false;
            }
        return true;
    }

    void placeOps() {
        call_.assign(graph_.ops.size(), kNone);
        std::vector<std::int32_t> ofLayer(graph_.layers.size(), kNone);
        for (std::size_t i = 0; i < graph_.layers.size(); ++i) {
            const LayerIndex parent = graph_.layers[i].parent;
            if (parent != kNone) ofLayer[i] = ofLayer[parent];
            for (std::size_t r = 0; r < regions_.size(); ++r)
                if (regions_[r].layer == static_cast<LayerIndex>(i))
                    ofLayer[i] = static_cast<std::int32_t>(r);
        }
        // A module that runs several times is as many checkpoints: one for every unbroken run of
        // its ops.
        std::int32_t last = kNone;
        for (std::size_t i = 0; i < graph_.ops.size(); ++i) {
            const Op& op = graph_.ops[i];
            if (op.phase != Phase::Forward) continue;
            const std::int32_t region = op.layer == kNone ? kNone : ofLayer[op.layer];
            if (region != kNone && region != last) {
                keepsPlan_.push_back(regions_[region].keepsPlan);
                end_.push_back(kNone);
            }
            last = region;
            if (region == kNone) continue;
            call_[i] = static_cast<std::int32_t>(end_.size()) - 1;
            end_.back() = static_cast<OpIndex>(i);
        }
    }

    // A storage is dropped when its region's forward is over, if only that region's forward reads
    // it: what others read is the region's result.
    void placeStorages() {
        callOf_.assign(graph_.storages.size(), kNone);
        readInside_.assign(graph_.storages.size(), false);
        droppedAfter_.resize(graph_.ops.size());
        needs_.resize(end_.size());
        readBy_.resize(end_.size());
        for (std::size_t s = 0; s < graph_.storages.size(); ++s) {
            const Storage& storage = graph_.storages[s];
            for (const OpIndex reader : storage.readers) {
                if (call_[reader] == kNone) continue;
                readInside_[s] = true;
                std::vector<StorageIndex>& read = readBy_[call_[reader]];
                if (read.empty() || read.back() != static_cast<StorageIndex>(s))
                    read.push_back(static_cast<StorageIndex>(s));
            }
            if (storage.isConstant() || storage.aliveAtEnd || !info_.rematerializable[s]) continue;
            const std::int32_t call = call_[storage.creator];
            if (call == kNone) continue;
            if (keepsPlan_[call] && held_.saves[storage.creator]) continue;
            const bool outside =
                std::any_of(storage.readers.begin(), storage.readers.end(), [&](OpIndex reader) {
                    return graph_.ops[reader].phase == Phase::Forward && call_[reader] != call;
                });
            if (outside) continue;
            callOf_[s] = call;
            droppedAfter_[end_[call]].push_back(static_cast<StorageIndex>(s));
        }
        for (OpIndex op = lastForwardOp(graph_) + 1; op < static_cast<OpIndex>(graph_.ops.size());
             ++op)
            for (const Use& use : graph_.ops[op].inputs)
                if (const auto call = callOf_[graph_.storageOf(use.tensor)]; call != kNone)
                    needs_[call].emplace_back(op, use);
        // What stays only for calls to come may go with the last of them.
        pending_.assign(graph_.storages.size(), 0);
        lastUsedBy_.resize(graph_.ops.size());
        for (std::size_t call = 0; call < needs_.size(); ++call)
            if (!needs_[call].empty())
                for (const StorageIndex s : readBy_[call]) ++pending_[s];
        for (std::size_t s = 0; s < graph_.storages.size(); ++s)
            if (readInside_[s] && callOf_[s] == kNone && info_.rematerializable[s] &&
                info_.lastUse[s] < static_cast<OpIndex>(graph_.ops.size()))
                lastUsedBy_[info_.lastUse[s]].push_back(static_cast<StorageIndex>(s));
    }

    void releaseIfUnneeded(StorageIndex s) {
        if (pending_[s] == 0 && info_.rematerializable[s] && info_.lastUse[s] < builder_.next() &&
            callOf_[s] == kNone && builder_.resident(s))
            builder_.drop(s);
    }

    void restoreFor(OpIndex op) {
        std::set<std::int32_t> missing;
        for (const Use& use : graph_.ops[op].inputs) {
            const StorageIndex s = graph_.storageOf(use.tensor);
            if (callOf_[s] != kNone && !builder_.resident(s)) missing.insert(callOf_[s]);
        }
        for (const std::int32_t call : missing) {
            std::vector<Use> uses;
            for (const auto& [reader, use] : needs_[call])
                if (reader >= op && !builder_.resident(graph_.storageOf(use.tensor)))
                    uses.push_back(use);
            builder_.rebuild(uses);
            for (const StorageIndex s : readBy_[call]) {
                --pending_[s];
                releaseIfUnneeded(s);
            }
        }
    }

    const TrainingGraph& graph_;
    const RebuildInfo& info_;
    const HeldByPlan& held_;
    const std::vector<CheckpointRegion>& regions_;
    ScheduleBuilder builder_;
    // A call is one run of a region's module.
    std::vector<std::int32_t> call_;                 // by op; kNone: outside
    std::vector<bool> keepsPlan_;                    // by call
    std::vector<OpIndex> end_;                       // by call: its last forward op
    std::vector<std::int32_t> callOf_;               // by storage: the call that drops it
    std::vector<bool> readInside_;                   // by storage: an op of a region reads it
    std::vector<std::vector<StorageIndex>> readBy_;  // by call
    std::vector<int> pending_;  // by storage: calls that read it and are still to be restored
    std::vector<std::vector<StorageIndex>> lastUsedBy_;        // by op: what calls read
    std::vector<std::vector<StorageIndex>> droppedAfter_;      // by op
    std::vector<std::vector<std::pair<OpIndex, Use>>> needs_;  // by call: its uses in backward
};

}  // namespace

std::optional<CheckpointForecast> forecast(const TrainingGraph& graph, const RebuildInfo& info,
                                           const HeldByPlan& held,
                                           const std::vector<CheckpointRegion>& regions) {
    return Simulation(graph, info, held, regions).run();
}

}  // namespace hw::planners

// SPDX-License-Identifier: MIT
#include <algorithm>
#include <set>

#include "live/compile/placement.h"

namespace hw::live {
namespace {

using namespace core;
using profiler::wire::LiveAction;

/// Decides what of a draft can be done, and adds what that takes.
class Restorer {
public:
    Restorer(const TrainingGraph& graph, DraftPlacement draft)
        : graph_(graph), draft_(std::move(draft)) {
        placed_.keep.resize(graph.ops.size());
        placed_.followed.resize(graph.storages.size());
    }

    Placement run() {
        findExpiries();
        settleDrops();
        secureDrops();
        markKept();
        holdSources();
        endWithLastOp();
        markFollowed();
        return std::move(placed_);
    }

private:
    /// The last op before which a storage can be made again from sources: they must still be there,
    /// at the version that was read. An op that writes one is never run again.
    void findExpiries() {
        for (StorageIndex s = 0; s < static_cast<StorageIndex>(graph_.storages.size()); ++s)
            if (!isSource(graph_, s)) draft_.expiry[s] = kStepEnd;
        for (OpIndex i = 0; i < static_cast<OpIndex>(graph_.ops.size()); ++i) {
            const Op& op = graph_.ops[i];
            OpIndex until = kStepEnd;
            for (const Use& use : op.inputs) {
                const StorageIndex s = graph_.storageOf(use.tensor);
                until = std::min(until, draft_.expiry[s]);
                const auto& writers = graph_.storages[s].writers;
                if (isSource(graph_, s) && static_cast<std::size_t>(use.version) < writers.size())
                    until = std::min(until, writers[static_cast<std::size_t>(use.version)]);
            }
            for (const Write& write : op.writes)
                if (isSource(graph_, write.storage)) until = i;
            for (const OpOutput& output : op.outputs)
                if (output.makesStorage && !isSource(graph_, graph_.storageOf(output.tensor)))
                    lower(graph_.storageOf(output.tensor), until);
            for (const Write& write : op.writes)
                if (!isSource(graph_, write.storage)) lower(write.storage, until);
        }
    }
    void lower(StorageIndex s, OpIndex until) {
        draft_.expiry[s] = std::min(draft_.expiry[s], until);
    }

    void settleDrops() {
        for (const DraftPlacement::Drop& drop : draft_.drops) {
            PlacedAction& action =
                (drop.before ? placed_.before : placed_.after)[drop.place.first][drop.place.second];
            if (draft_.expiry[drop.storage] >= drop.until) {
                ++placed_.drops;
                dropped_.push_back(drop.storage);
            } else {
                action.cancelled = true;
                placed_.kept += graph_.storages[drop.storage].bytes;
            }
        }
        for (const auto& [op, s] : draft_.holds)
            placed_.after[op].insert(placed_.after[op].begin(), {LiveAction::Hold, s});
    }

    /// The program may hold on to what it let go of when it was recorded. One place does for many:
    /// where any of them expires, all are secured that the program had let go of by then.
    void secureDrops() {
        std::vector<StorageIndex> expiring;
        for (const StorageIndex s : dropped_)
            if (draft_.expiry[s] != kStepEnd) expiring.push_back(s);
        std::sort(expiring.begin(), expiring.end());
        expiring.erase(std::unique(expiring.begin(), expiring.end()), expiring.end());
        std::set<OpIndex> places;
        for (const StorageIndex s : expiring) places.insert(draft_.expiry[s]);
        for (const StorageIndex s : expiring) {
            const auto first = places.lower_bound(std::min(draft_.releasedAt[s], draft_.expiry[s]));
            auto& list = placed_.before[*first];
            list.insert(list.begin(), {LiveAction::Secure, s});
        }
    }

    /// Whatever may have to run again, for the plan or because the program leaves it.
    void markKept() {
        std::vector<OpIndex> open;
        const auto chain = [&](StorageIndex s) {
            const Storage& storage = graph_.storages[s];
            if (isSource(graph_, s)) return;
            open.push_back(storage.creator);
            open.insert(open.end(), storage.writers.begin(), storage.writers.end());
        };
        for (const StorageIndex s : dropped_) chain(s);
        for (const auto& list : placed_.before)
            for (const PlacedAction& action : list)
                if (action.kind == LiveAction::Recompute) open.push_back(action.target);
        while (!open.empty()) {
            const OpIndex op = open.back();
            open.pop_back();
            if (placed_.keep[op]) continue;
            placed_.keep[op] = true;
            for (const Use& use : graph_.ops[op].inputs) chain(graph_.storageOf(use.tensor));
        }
    }

    /// What recomputations start from stays, even if the program should let go of it earlier than
    /// it did when it was recorded.
    void holdSources() {
        std::vector<bool> held(graph_.storages.size(), false);
        for (OpIndex i = 0; i < static_cast<OpIndex>(graph_.ops.size()); ++i)
            for (const Use& use : graph_.ops[i].inputs)
                if (const StorageIndex s = graph_.storageOf(use.tensor);
                    placed_.keep[i] && graph_.storages[s].isConstant() && !held[s]) {
                    held[s] = true;
                    holdConstant(s);
                }
    }
    void holdConstant(StorageIndex s) {
        const Storage& storage = graph_.storages[s];
        OpIndex first = storage.readers.front();
        if (!storage.writers.empty()) first = std::min(first, storage.writers.front());
        auto& list = placed_.before[first];
        list.insert(list.begin(), {LiveAction::Hold, s});
        if (draft_.releasedAt[s] != kStepEnd && draft_.expiry[s] == draft_.releasedAt[s])
            placed_.before[draft_.expiry[s]].push_back({LiveAction::Release, s});
    }

    /// What a plan makes again for the step's end, no op of the step comes after.
    void endWithLastOp() {
        if (graph_.ops.empty()) return;
        auto& last = placed_.after[graph_.ops.size() - 1];
        const auto& atEnd = placed_.before[graph_.ops.size()];
        last.insert(last.end(), atEnd.begin(), atEnd.end());
    }

    /// What actions work on, and all that may have to run again.
    void markFollowed() {
        for (OpIndex i = 0; i < static_cast<OpIndex>(graph_.ops.size()); ++i) {
            if (!placed_.keep[i]) continue;
            const Op& op = graph_.ops[i];
            for (const Use& use : op.inputs) placed_.followed[graph_.storageOf(use.tensor)] = true;
            for (const Write& write : op.writes) placed_.followed[write.storage] = true;
            for (const OpOutput& output : op.outputs)
                placed_.followed[graph_.storageOf(output.tensor)] = true;
        }
        for (const auto* const lists : {&placed_.before, &placed_.after})
            for (const std::vector<PlacedAction>& list : *lists)
                for (const PlacedAction& action : list)
                    if (action.kind != LiveAction::Recompute)
                        placed_.followed[action.target] = true;
        for (StorageIndex s = 0; s < static_cast<StorageIndex>(graph_.storages.size()); ++s)
            if (isGathered(graph_.storages[s])) placed_.followed[s] = true;
    }

    const TrainingGraph& graph_;
    DraftPlacement draft_;
    Placement& placed_ = draft_.placement;
    std::vector<StorageIndex> dropped_;  // and restorable
};

}  // namespace

bool isSource(const TrainingGraph& graph, StorageIndex storage) {
    const Storage& it = graph.storages[storage];
    return it.isConstant() || graph.ops[it.creator].once;
}

bool isGathered(const Storage& storage) {
    return storage.isConstant() && storage.unseen && storage.isParameter();
}

Placement keepRestorable(const TrainingGraph& graph, DraftPlacement draft) {
    return Restorer(graph, std::move(draft)).run();
}

}  // namespace hw::live

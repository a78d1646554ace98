// SPDX-License-Identifier: MIT
#include "planners/offload/idle_stretches.h"

#include <algorithm>
#include <optional>

#include "core/memory/replay.h"

namespace hw::planners {

using namespace hw::core;

namespace {

class Finder : public ReplayListener {
public:
    Finder(const TrainingGraph& graph, Bytes least)
        : graph_(graph), counts_(graph.storages.size()), since_(graph.storages.size()) {
        for (std::size_t s = 0; s < counts_.size(); ++s) {
            const Storage& storage = graph.storages[s];
            counts_[s] = storage.bytes >= least && storage.bytes > Bytes(0) && !storage.unseen &&
                         !storage.writtenUnseen && !storage.quantized;
        }
    }

    void runs(const ReplayState& now, const Action& action) {
        const Op& op = graph_.ops[action.target];
        for (const Use& use : op.inputs) touch(now, graph_.storageOf(use.tensor));
        for (const Write& write : op.writes) touch(now, write.storage);
    }
    void made(const ReplayState& now, const Action&, StorageIndex s, std::size_t) {
        since_[s] = now.action() + 1;
    }
    void constant(const ReplayState& now, StorageIndex s) {
        if (!graph_.recorded || lasts(graph_.storages[s])) since_[s] = now.action();
    }
    void freed(const ReplayState&, StorageIndex s) { since_[s].reset(); }
    void replaced(const ReplayState&, StorageIndex s, const StandIn&) { since_[s].reset(); }
    void restored(const ReplayState& now, StorageIndex s, const StandIn&) {
        since_[s] = now.action() + 1;
    }

    std::vector<IdleStretch> finish(const ReplayState& now) {
        for (StorageIndex s = 0; s < static_cast<StorageIndex>(since_.size()); ++s)
            if (since_[s]) touch(now, s);
        std::stable_sort(
            found_.begin(), found_.end(),
            [](const IdleStretch& a, const IdleStretch& b) { return a.before < b.before; });
        return std::move(found_);
    }

private:
    /// It is the same storage in each step.
    static bool lasts(const Storage& storage) {
        return storage.aliveAtEnd &&
               (storage.isParameter() || storage.category == Category::OptimizerState);
    }

    void touch(const ReplayState& now, StorageIndex s) {
        if (!counts_[s]) return;
        const std::size_t at = now.action();
        if (since_[s] && at > *since_[s] && now.standIn(s) == nullptr)
            found_.push_back({s, *since_[s], at});
        since_[s] = at + 1;
    }

    const TrainingGraph& graph_;
    std::vector<bool> counts_;
    std::vector<std::optional<std::size_t>> since_;  // touched last, or came: none: away, unknown
    std::vector<IdleStretch> found_;
};

}  // namespace

std::vector<IdleStretch> idleStretches(const TrainingGraph& graph, const Schedule& schedule,
                                       Bytes least) {
    Finder finder(graph, least);
    Replay replay(graph, finder);
    if (!replay.run(schedule)) return {};
    return finder.finish(replay);
}

}  // namespace hw::planners

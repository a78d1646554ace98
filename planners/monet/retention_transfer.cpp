// SPDX-License-Identifier: MIT
#include <algorithm>
#include <map>

#include "planners/monet/search.h"

namespace hw::planners {

using namespace hw::core;

namespace {

// Where the storages of one graph are in another one.
class StorageMap {
public:
    StorageMap(const TrainingGraph& from, const TrainingGraph& to) : from_(from), to_(to) {
        // Storages that an implementation adds: the last output of their op, with a tensor that the
        // captured graph does not have. They are told apart by their op.
        for (OpIndex op = 0; op < static_cast<OpIndex>(to.ops.size()); ++op)
            if (to.ops[op].outputs.size() > from.ops[op].outputs.size())
                addedIn_.push_back(to.storageOf(to.ops[op].outputs.back().tensor));
    }

    StorageIndex operator[](StorageIndex storage) const {
        const Storage& old = from_.storages[storage];
        if (old.tensors.empty()) return kNone;
        const OpIndex maker = old.creator;
        if (maker == kNone) return to_.storageOf(old.tensors.front());
        const auto& outputs = from_.ops[maker].outputs;
        for (std::size_t j = 0; j < std::min(outputs.size(), to_.ops[maker].outputs.size()); ++j)
            if (outputs[j].makesStorage && from_.storageOf(outputs[j].tensor) == storage)
                return to_.storageOf(to_.ops[maker].outputs[j].tensor);
        return kNone;
    }
    bool added(StorageIndex storage) const {
        return std::find(addedIn_.begin(), addedIn_.end(), storage) != addedIn_.end();
    }

private:
    const TrainingGraph& from_;
    const TrainingGraph& to_;
    std::vector<StorageIndex> addedIn_;
};

// Stage of `to` for each stage of `from`: that of the same op, or of the next op that has one.
std::vector<StageIndex> stageMap(const StageModel& from, const StageModel& to) {
    std::vector<StageIndex> map(static_cast<std::size_t>(from.end) + 1, to.end);
    StageIndex next = to.end;
    for (StageIndex k = from.end; k >= 0; --k) {
        const OpIndex op = from.opOf(k);
        if (k < from.end && !to.lazy(op)) next = to.stageOf[op];
        map[k] = next;
    }
    return map;
}

void copyRuns(const StageJudge& from, ItemIndex i, const std::vector<StageIndex>& stages,
              StageJudge& to, ItemIndex into) {
    const StageIndex last = from.lastStage(i);
    for (StageIndex k = from.nextRetained(i, from.firstStage(i), last); k <= last;) {
        StageIndex end = k;
        while (from.retained(i, end + 1)) ++end;
        to.set(into, stages[k], stages[end], true);
        k = from.nextRetained(i, end + 1, last);
    }
}

}  // namespace

void transferRetention(const StageJudge& from, StageJudge& to) {
    const StageModel& old = from.model();
    const StageModel& now = to.model();
    const StorageMap storages(*old.graph, *now.graph);
    const std::vector<StageIndex> stages = stageMap(old, now);
    std::vector<ItemIndex> target(old.itemCount(), kNone);
    for (ItemIndex i = 0; i < static_cast<ItemIndex>(old.itemCount()); ++i)
        if (const StorageIndex s = storages[old.storages[i]]; s != kNone) target[i] = now.itemOf[s];
    for (const ItemIndex i : target)
        if (i != kNone) to.set(i, to.firstStage(i), to.lastStage(i), false);
    for (ItemIndex i = 0; i < static_cast<ItemIndex>(old.itemCount()); ++i)
        if (target[i] != kNone) copyRuns(from, i, stages, to, target[i]);
    to.settle();
    to.commit();

    for (OpIndex op = 0; op < static_cast<OpIndex>(now.graph->ops.size()); ++op) {
        if (now.lazy(op)) continue;
        const auto before = old.inputs[op];
        for (const ItemIndex i : now.inputs[op]) {
            if (storages.added(now.storages[i])) continue;
            const bool known = std::any_of(before.begin(), before.end(),
                                           [&](ItemIndex other) { return target[other] == i; });
            const StageIndex stage = now.stageOf[op];
            if (!known) to.set(i, to.previousInvolved(i, now.born[i], stage - 1) + 1, stage, true);
        }
    }
    to.settle();
    to.commit();
    to.trim();
}

}  // namespace hw::planners

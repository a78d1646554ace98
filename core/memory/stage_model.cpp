// SPDX-License-Identifier: MIT
#include "core/memory/stage_model.h"

#include <algorithm>

#include "core/graph/captured_order.h"
#include "core/memory/rebuild.h"

namespace hw::core {
namespace {

void addOnce(std::vector<std::int32_t>& list, std::int32_t value) {
    if (std::find(list.begin(), list.end(), value) == list.end()) list.push_back(value);
}

// Fills a StageModel; holds what only the building needs.
class Builder {
public:
    Builder(const TrainingGraph& graph, StageModel& model)
        : graph_(graph), model_(model), info_(rebuildInfo(graph)) {}

    void build() {
        chooseItems();
        chooseStages();
        describeOps();
        describeItems();
        spreadNeeds();
        fillFixedBytes();
    }

private:
    OpIndex opCount() const { return static_cast<OpIndex>(graph_.ops.size()); }
    StorageIndex storageCount() const { return static_cast<StorageIndex>(graph_.storages.size()); }

    void chooseItems() {
        model_.itemOf.assign(graph_.storages.size(), kNone);
        for (StorageIndex s = 0; s < storageCount(); ++s) {
            const bool staysAfter = info_.rebuildableBefore[s] != kNone;
            if (!info_.rematerializable[s] && !staysAfter) continue;
            if (graph_.storages[s].bytes <= Bytes(0)) continue;
            model_.itemOf[s] = static_cast<ItemIndex>(model_.storages.size());
            model_.storages.push_back(s);
            model_.bytes.push_back(graph_.storages[s].bytes);
            model_.staysAfter.push_back(staysAfter);
        }
    }

    // The item of a storage that `op` reads or writes; kNone where it stays by then.
    ItemIndex itemFor(OpIndex op, StorageIndex s) const {
        const OpIndex last = info_.rebuildableBefore[s];
        return last == kNone || op <= last ? model_.itemOf[s] : kNone;
    }

    // A view may wait only when it looks at one item that is never written: otherwise the version
    // that it reads, or another input, ties it to its place. An op without results, such as item(),
    // reads bytes where the program asks for them.
    bool mayWait(const Op& op) const {
        if (!op.viewOnly || op.inputs.empty() || op.outputs.empty()) return false;
        const StorageIndex s = graph_.storageOf(op.inputs.front().tensor);
        if (model_.itemOf[s] == kNone || !graph_.storages[s].writers.empty()) return false;
        const auto onIt = [&](TensorIndex tensor) { return graph_.storageOf(tensor) == s; };
        return std::all_of(op.inputs.begin(), op.inputs.end(),
                           [&](const Use& use) { return onIt(use.tensor); }) &&
               std::all_of(op.outputs.begin(), op.outputs.end(),
                           [&](const OpOutput& output) { return onIt(output.tensor); });
    }

    void chooseStages() {
        model_.stageOf.assign(graph_.ops.size(), kNone);
        for (OpIndex op = 0; op < opCount(); ++op) {
            if (mayWait(graph_.ops[op])) continue;
            model_.stageOf[op] = static_cast<StageIndex>(model_.stageOps.size());
            model_.stageOps.push_back(op);
        }
        model_.end = static_cast<StageIndex>(model_.stageOps.size());
    }

    // The lazy views behind a tensor, parents first.
    void addLazyViews(TensorIndex tensor, std::vector<std::int32_t>& list) const {
        const OpIndex maker = graph_.tensors[tensor].creator;
        if (maker == kNone || !model_.lazy(maker)) return;
        if (std::find(list.begin(), list.end(), maker) != list.end()) return;
        for (const Use& use : graph_.ops[maker].inputs) addLazyViews(use.tensor, list);
        addOnce(list, maker);
    }

    // The last op with a stage that must have run before the lazy view `view`, which looks through
    // `parents`: the creator of its storage, or an op that made one of the views behind it.
    OpIndex lastMakerBehind(OpIndex view, const std::vector<std::int32_t>& parents) const {
        const TensorIndex seen = graph_.ops[view].inputs.front().tensor;
        OpIndex last = graph_.storages[graph_.storageOf(seen)].creator;
        const auto look = [&](OpIndex through) {
            for (const Use& use : graph_.ops[through].inputs)
                if (const OpIndex maker = graph_.tensors[use.tensor].creator;
                    maker != kNone && !model_.lazy(maker))
                    last = std::max(last, maker);
        };
        look(view);
        for (const OpIndex parent : parents) look(parent);
        return last;
    }

    void describeOps() {
        std::vector<std::vector<std::int32_t>> read(graph_.ops.size() + 1);
        std::vector<bool> viewRead(graph_.ops.size(), false);
        const auto describe = [&](OpIndex op, std::span<const Use> uses) {
            std::vector<std::int32_t> items, views;
            for (const Use& use : uses) {
                if (const ItemIndex i = itemFor(op, graph_.storageOf(use.tensor)); i != kNone)
                    addOnce(items, i);
                addLazyViews(use.tensor, views);
            }
            if (op < opCount())
                for (const Write& write : graph_.ops[op].writes)
                    if (const ItemIndex i = itemFor(op, write.storage); i != kNone)
                        addOnce(items, i);
            if (op == opCount() || !model_.lazy(op))
                for (const OpIndex view : views) viewRead[view] = true;
            model_.inputs.append(items);
            read[op] = std::move(views);
        };
        for (OpIndex i = 0; i < opCount(); ++i) {
            const Op& op = graph_.ops[i];
            describe(i, op.inputs);
            std::vector<std::int32_t> made;
            Bytes bytes;
            for (const OpOutput& output : op.outputs) {
                if (!output.makesStorage) continue;
                const StorageIndex s = graph_.storageOf(output.tensor);
                bytes += graph_.storages[s].bytes;
                if (model_.itemOf[s] != kNone) made.push_back(model_.itemOf[s]);
            }
            model_.outputs.append(made);
            model_.newBytes.push_back(bytes);
            model_.footprint.push_back(bytes + op.workspace);
            model_.time.push_back(op.time);
        }
        std::vector<Use> finals;
        for (const TensorIndex tensor : graph_.finalTensors) finals.push_back({tensor, 0});
        describe(opCount(), finals);
        model_.outputs.append({});
        model_.newBytes.emplace_back();
        model_.footprint.emplace_back();
        model_.time.emplace_back();
        for (const auto& views : read) model_.lazyViews.append(views);

        std::vector<std::vector<std::int32_t>> unread(graph_.ops.size() + 1);
        for (OpIndex i = 0; i < opCount(); ++i)
            if (model_.lazy(i) && !viewRead[i]) {
                const OpIndex behind = lastMakerBehind(i, read[i]);
                for (const OpIndex parent : read[i]) addOnce(unread[behind], parent);
                addOnce(unread[behind], i);
            }
        for (const auto& list : unread) model_.unreadViews.append(list);
    }

    void describeItems() {
        std::vector<std::vector<std::int32_t>> uses(model_.itemCount());
        for (StageIndex k = 0; k <= model_.end; ++k)
            for (const ItemIndex i : model_.inputs[static_cast<std::size_t>(model_.opOf(k))])
                uses[i].push_back(k);
        for (ItemIndex i = 0; i < static_cast<ItemIndex>(model_.itemCount()); ++i) {
            const StorageIndex s = model_.storages[i];
            std::vector<std::int32_t> chain, views;
            for (const OpIndex op : info_.chain[s])
                if (!model_.staysAfter[i] || op < info_.rebuildableBefore[s])
                    (model_.lazy(op) ? views : chain).push_back(op);
            model_.uses.append(uses[i]);
            model_.chain.append(chain);
            model_.views.append(views);
            model_.born.push_back(model_.stageOf[graph_.storages[s].creator]);
        }
    }

    // Last stage that may read a storage: its own uses, then those of everything that is rebuilt
    // from it.
    void spreadNeeds() {
        std::vector<StageIndex> needed(graph_.storages.size(), kNone);
        const auto read = [&](StageIndex k, StorageIndex s) { needed[s] = std::max(needed[s], k); };
        for (OpIndex i = 0; i < opCount(); ++i) {
            if (model_.lazy(i)) continue;
            for (const Use& use : graph_.ops[i].inputs)
                read(model_.stageOf[i], graph_.storageOf(use.tensor));
            for (const Write& write : graph_.ops[i].writes) read(model_.stageOf[i], write.storage);
        }
        for (const TensorIndex tensor : graph_.finalTensors)
            read(model_.end, graph_.storageOf(tensor));
        for (StorageIndex s = 0; s < storageCount(); ++s)
            if (graph_.storages[s].aliveAtEnd) needed[s] = model_.end;
        for (bool changed = true; changed;) {
            changed = false;
            for (auto i = static_cast<ItemIndex>(model_.itemCount()) - 1; i >= 0; --i) {
                const StageIndex until = lastRebuild(i, needed);
                for (const OpIndex op : model_.chain[i])
                    for (const Use& use : graph_.ops[op].inputs)
                        if (StageIndex& other = needed[graph_.storageOf(use.tensor)]; other < until)
                            other = until, changed = true;
            }
        }
        for (StorageIndex s = 0; s < storageCount(); ++s)
            if (info_.heldUntil[s] != kNone) read(model_.stageOf[info_.heldUntil[s]], s);
        for (ItemIndex i = 0; i < static_cast<ItemIndex>(model_.itemCount()); ++i)
            model_.neededUntil.push_back(std::max(lastRebuild(i, needed), kNone));
        model_.storageNeededUntil = std::move(needed);
    }

    StageIndex lastRebuild(ItemIndex i, const std::vector<StageIndex>& needed) const {
        const StorageIndex s = model_.storages[i];
        return model_.staysAfter[i] ? model_.stageOf[info_.rebuildableBefore[s]] : needed[s];
    }

    void fillFixedBytes() {
        const auto stages = static_cast<std::size_t>(model_.end) + 1;
        model_.constantsAfter.assign(stages, Bytes(0));
        std::vector<Bytes> change(stages + 1, Bytes(0));
        for (const ConstantStart& start : capturedOrder(graph_).constants) {
            const StageIndex before = start.after == kNone ? kNone : model_.stageOf[start.after];
            if (before != kNone)
                model_.constantsAfter[before] += graph_.storages[start.storage].bytes;
            hold(start.storage, before + 1, change);
        }
        for (StorageIndex s = 0; s < storageCount(); ++s)
            if (model_.staysFrom(s) != kNone) hold(s, model_.staysFrom(s) + 1, change);
        model_.fixedBytes.assign(stages, Bytes(0));
        Bytes sum;
        for (std::size_t k = 0; k < stages; ++k) model_.fixedBytes[k] = sum += change[k];
    }

    // What stays is there from stage `from` to the last that may read it.
    void hold(StorageIndex s, StageIndex from, std::vector<Bytes>& change) const {
        const StageIndex until = std::max(model_.storageNeededUntil[s],
                                          graph_.storages[s].isConstant() ? from : from - 1);
        if (until < from) return;
        change[from] += graph_.storages[s].bytes;
        change[until + 1] -= graph_.storages[s].bytes;
    }

    const TrainingGraph& graph_;
    StageModel& model_;
    RebuildInfo info_;
};

}  // namespace

StageModel::StageModel(const TrainingGraph& source) : graph(&source) {
    Builder(source, *this).build();
}

StageIndex StageModel::staysFrom(StorageIndex storage) const {
    if (graph->storages[storage].isConstant()) return kNone;
    const ItemIndex i = itemOf[storage];
    if (i == kNone) return stageOf[graph->storages[storage].creator];
    return staysAfter[i] ? neededUntil[i] : kNone;
}

}  // namespace hw::core

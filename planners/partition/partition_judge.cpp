// SPDX-License-Identifier: MIT
#include "planners/partition/partition_judge.h"

#include <algorithm>

namespace hw::planners {

using namespace core;

PartitionJudge::PartitionJudge(const JointRegion& region)
    : region_(region),
      graph_(region.graph),
      makers_(graph_.tensors.size(), kNone),
      fixed_(graph_.storages.size()),
      forwardOutput_(graph_.storages.size()),
      backwardOutput_(graph_.storages.size()) {
    const auto count = static_cast<OpIndex>(graph_.ops.size());
    for (OpIndex i = 0; i < count; ++i) {
        const Op& op = graph_.ops[i];
        for (const OpOutput& output : op.outputs) {
            if (makers_[output.tensor] == kNone) makers_[output.tensor] = i;
            if (op.once && output.makesStorage) fixed_[graph_.storageOf(output.tensor)] = true;
        }
    }
    for (const TensorIndex tensor : graph_.finalTensors) {
        const StorageIndex storage = graph_.storageOf(tensor);
        const OpIndex creator = graph_.storages[storage].creator;
        (creator != kNone && !isForward(creator) ? backwardOutput_ : forwardOutput_)[storage] =
            true;
    }
    for (StorageIndex s = 0; s < static_cast<StorageIndex>(graph_.storages.size()); ++s) {
        const Storage& storage = graph_.storages[s];
        if (storage.isConstant()) {
            if (!storage.readers.empty() && !isForward(storage.readers.front()))
                tangents_.push_back(s);
        } else if (isForward(storage.creator) && !fixed_[s] && !forwardOutput_[s]) {
            choices_.push_back(s);
        }
    }
}

// The frontier: from what the backward reads to what is kept or given.
std::vector<bool> PartitionJudge::madeAgain(const KeptFlags& kept, std::vector<bool>& saved) const {
    std::vector<bool> again(graph_.ops.size());
    std::vector<TensorIndex> open;
    const auto read = [&](OpIndex op) {
        for (const Use& use : graph_.ops[op].inputs) open.push_back(use.tensor);
    };
    for (OpIndex i = region_.backward; i < static_cast<OpIndex>(graph_.ops.size()); ++i) read(i);
    while (!open.empty()) {
        const TensorIndex tensor = open.back();
        open.pop_back();
        const OpIndex maker = makers_[tensor];
        if (maker == kNone || !isForward(maker) || again[maker]) continue;
        const StorageIndex storage = graph_.storageOf(tensor);
        const bool isRoot = graph_.storages[storage].creator == maker;
        if (isRoot && (kept[storage] || fixed_[storage] || forwardOutput_[storage])) {
            saved[storage] = true;
            continue;
        }
        again[maker] = true;
        read(maker);
    }
    return again;
}

// What the forward gives back or saves, and all that this is made from.
PartitionJudge::Order PartitionJudge::forward(const std::vector<bool>& saved) const {
    Order order;
    order.stays = forwardOutput_;
    std::vector<bool> runs(graph_.ops.size());
    std::vector<OpIndex> open;
    const auto want = [&](OpIndex op) {
        if (op != kNone && isForward(op) && !runs[op]) runs[op] = true, open.push_back(op);
    };
    for (const TensorIndex tensor : graph_.finalTensors) want(makers_[tensor]);
    for (StorageIndex s = 0; s < static_cast<StorageIndex>(saved.size()); ++s)
        if (saved[s]) want(graph_.storages[s].creator), order.stays[s] = true;
    while (!open.empty()) {
        const OpIndex op = open.back();
        open.pop_back();
        for (const Use& use : graph_.ops[op].inputs) want(makers_[use.tensor]);
    }
    for (OpIndex i = 0; i < region_.backward; ++i)
        if (runs[i]) order.ops.push_back(i);
    return order;
}

// As the partitioner orders it (reordering_to_mimic_autograd_engine): again where it is first
// wanted.
PartitionJudge::Order PartitionJudge::backward(const std::vector<bool>& again,
                                               const std::vector<bool>& saved) const {
    Order order;
    order.stays = backwardOutput_;
    for (StorageIndex s = 0; s < static_cast<StorageIndex>(saved.size()); ++s) {
        if (saved[s]) order.atBegin.push_back(s);
        if (forwardOutput_[s]) order.stays[s] = true;
    }
    for (const StorageIndex s : tangents_) order.atBegin.push_back(s);
    std::vector<bool> done(graph_.ops.size());
    std::vector<OpIndex> pulled, open;
    for (OpIndex i = region_.backward; i < static_cast<OpIndex>(graph_.ops.size()); ++i) {
        pulled.clear();
        open.push_back(i);
        while (!open.empty()) {
            const OpIndex op = open.back();
            open.pop_back();
            for (const Use& use : graph_.ops[op].inputs) {
                const OpIndex maker = makers_[use.tensor];
                if (maker == kNone || !isForward(maker) || !again[maker] || done[maker]) continue;
                done[maker] = true;
                pulled.push_back(maker);
                open.push_back(maker);
            }
        }
        std::sort(pulled.begin(), pulled.end());
        order.ops.insert(order.ops.end(), pulled.begin(), pulled.end());
        order.ops.push_back(i);
    }
    return order;
}

// By storage: the compiler fuses its maker with all that read it, as no kernel of another kind lies
// between, so that it has no buffer.
std::vector<bool> PartitionJudge::fusedAway(const Order& order,
                                            const std::vector<std::int32_t>& last) const {
    std::vector<bool> fused(graph_.storages.size());
    std::vector<std::int32_t> others(order.ops.size() + 1);  // kernels of other kinds before each
    std::vector<bool> read(graph_.storages.size());          // by such a kernel
    for (std::size_t n = 0; n < order.ops.size(); ++n) {
        const Op& op = graph_.ops[order.ops[n]];
        const bool fusible = region_.fusible[static_cast<std::size_t>(order.ops[n])];
        others[n + 1] = others[n] + (fusible ? 0 : 1);
        if (!fusible)
            for (const Use& use : op.inputs) read[graph_.storageOf(use.tensor)] = true;
    }
    for (std::size_t n = 0; n < order.ops.size(); ++n) {
        const Op& op = graph_.ops[order.ops[n]];
        if (!region_.fusible[static_cast<std::size_t>(order.ops[n])] || op.outputs.size() != 1)
            continue;
        const StorageIndex s = graph_.storageOf(op.outputs[0].tensor);
        if (!op.outputs[0].makesStorage || order.stays[s] || read[s] || last[s] < 0) continue;
        fused[s] = others[static_cast<std::size_t>(last[s])] == others[n];
    }
    return fused;
}

void PartitionJudge::replay(const Order& order, Bytes budget, PartitionFigures& figures) const {
    std::vector<std::int32_t> last(graph_.storages.size(), -1);
    for (std::int32_t n = 0; n < static_cast<std::int32_t>(order.ops.size()); ++n) {
        const Op& op = graph_.ops[order.ops[static_cast<std::size_t>(n)]];
        for (const Use& use : op.inputs) last[graph_.storageOf(use.tensor)] = n;
        for (const OpOutput& output : op.outputs) last[graph_.storageOf(output.tensor)] = n;
    }
    const std::vector<bool> fused = fusedAway(order, last);
    std::vector<bool> there(graph_.storages.size());
    std::int64_t live = 0;
    for (const StorageIndex s : order.atBegin)
        there[s] = true, live += graph_.storages[s].bytes.count();
    const auto end = [&](StorageIndex s, std::int32_t n) {
        if (last[s] != n || !there[s] || order.stays[s]) return;
        there[s] = false;
        live -= graph_.storages[s].bytes.count();
    };
    for (std::int32_t n = 0; n < static_cast<std::int32_t>(order.ops.size()); ++n) {
        const Op& op = graph_.ops[order.ops[static_cast<std::size_t>(n)]];
        figures.time += op.time;
        for (const OpOutput& output : op.outputs) {
            const StorageIndex s = graph_.storageOf(output.tensor);
            if (!output.makesStorage || there[s] || fused[s]) continue;
            there[s] = true;
            live += graph_.storages[s].bytes.count();
        }
        figures.peak = std::max(figures.peak, Bytes(live));
        figures.overflow += std::max<std::int64_t>(0, live - budget.count());
        for (const Use& use : op.inputs) end(graph_.storageOf(use.tensor), n);
        for (const OpOutput& output : op.outputs) end(graph_.storageOf(output.tensor), n);
    }
}

PartitionFigures PartitionJudge::figures(const KeptFlags& kept, Bytes budget) const {
    std::vector<bool> saved(graph_.storages.size());
    const std::vector<bool> again = madeAgain(kept, saved);
    PartitionFigures figures;
    for (StorageIndex s = 0; s < static_cast<StorageIndex>(saved.size()); ++s)
        if (saved[s] && !forwardOutput_[s] && !fixed_[s]) figures.kept += graph_.storages[s].bytes;
    replay(forward(saved), budget, figures);
    replay(backward(again, saved), budget, figures);
    return figures;
}

}  // namespace hw::planners

// SPDX-License-Identifier: MIT
#include "core/memory/graph_window.h"

#include <algorithm>

namespace hw::core {

namespace {

template <class T>
void sortUnique(std::vector<T>& list) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
}

}  // namespace

WindowCutter::WindowCutter(const TrainingGraph& graph, const Lifetimes& lives)
    : graph_(graph),
      lives_(lives),
      tensorUntil_(graph.tensors.size(), kNone),
      arrivals_(graph.ops.size() + 1),
      storageIn_(graph.storages.size(), kNone),
      tensorIn_(graph.tensors.size(), kNone) {
    const auto ops = static_cast<OpIndex>(graph.ops.size());
    for (OpIndex i = 0; i < ops; ++i)
        for (const Use& use : graph.ops[i].inputs) tensorUntil_[use.tensor] = i;
    for (const TensorIndex tensor : graph.finalTensors) tensorUntil_[tensor] = ops;
    for (StorageIndex s = 0; s < static_cast<StorageIndex>(graph.storages.size()); ++s)
        if (graph.storages[s].isConstant()) arrivals_[lives.born[s] + 1].push_back(s);
    present_ = arrivals_[0];
    for (TensorIndex t = 0; t < static_cast<TensorIndex>(graph.tensors.size()); ++t)
        if (graph.tensors[t].creator == kNone && graph.storages[graph.storageOf(t)].isConstant() &&
            tensorUntil_[t] != kNone)
            defined_.push_back(t);
}

std::int32_t WindowCutter::versionAt(StorageIndex s, OpIndex op) const {
    const ShortList<OpIndex>& writers = graph_.storages[s].writers;
    return static_cast<std::int32_t>(std::lower_bound(writers.begin(), writers.end(), op) -
                                     writers.begin());
}

std::optional<GraphWindow> WindowCutter::next(OpIndex to) {
    GraphWindow window;
    window.from = at_;
    window.to = to;
    chooseStorages(window);
    const std::vector<TensorIndex> tensors = chooseTensors(window);
    fill(window, tensors);
    fillEvents(window);
    fillFinals(window, tensors);
    const bool whole = window.graph.finish().empty();
    // What unseen code does to a storage shows where it was made, which may be another window.
    for (std::size_t s = 0; s < window.storages.size(); ++s)
        window.graph.storages[s].unseen = graph_.storages[window.storages[s]].unseen;
    for (OpIndex i = window.from; i < to; ++i)
        window.graph.ops[i - window.from].once = graph_.ops[i].once || carriesOn(i, window);
    for (const TensorIndex t : tensors) tensorIn_[t] = kNone;
    for (const StorageIndex s : window.storages) storageIn_[s] = kNone;
    moveOn(window);
    if (!whole) return std::nullopt;
    return window;
}

// Turns what came into the window, and ends in it, into what goes out of it: an accumulated
// gradient into the next. To run that again the window would have to hold both.
bool WindowCutter::carriesOn(OpIndex index, const GraphWindow& window) const {
    const Op& op = graph_.ops[index];
    const auto ends = [&](const Use& use) {
        const StorageIndex s = graph_.storageOf(use.tensor);
        return !graph_.storages[s].isConstant() && lives_.born[s] < window.from &&
               !crossesOut(s, window);
    };
    const auto goesOut = [&](const OpOutput& output) {
        return crossesOut(graph_.storageOf(output.tensor), window);
    };
    return !op.viewOnly && std::any_of(op.inputs.begin(), op.inputs.end(), ends) &&
           std::all_of(op.outputs.begin(), op.outputs.end(), goesOut);
}

void WindowCutter::chooseStorages(GraphWindow& window) {
    std::vector<StorageIndex>& list = window.storages;
    for (OpIndex i = window.from; i < window.to; ++i) {
        const Op& op = graph_.ops[i];
        for (const Use& use : op.inputs) list.push_back(graph_.storageOf(use.tensor));
        for (const OpOutput& output : op.outputs) list.push_back(graph_.storageOf(output.tensor));
        for (const Write& write : op.writes) list.push_back(write.storage);
    }
    std::vector<StorageIndex> others = present_;
    for (OpIndex i = window.from; i < window.to; ++i)
        others.insert(others.end(), arrivals_[i + 1].begin(), arrivals_[i + 1].end());
    for (const StorageIndex s : others)
        if (!crossesOut(s, window)) list.push_back(s);
    sortUnique(list);
    for (std::size_t i = 0; i < list.size(); ++i)
        storageIn_[list[i]] = static_cast<std::int32_t>(i);
    for (const StorageIndex s : others)
        if (storageIn_[s] == kNone) window.around += graph_.storages[s].bytes;
}

std::vector<TensorIndex> WindowCutter::chooseTensors(const GraphWindow& window) const {
    std::vector<TensorIndex> list;
    for (const TensorIndex t : defined_)
        if (storageIn_[graph_.storageOf(t)] != kNone) list.push_back(t);
    for (OpIndex i = window.from; i < window.to; ++i) {
        for (const Use& use : graph_.ops[i].inputs) list.push_back(use.tensor);
        for (const OpOutput& output : graph_.ops[i].outputs) list.push_back(output.tensor);
    }
    // What is only written later is told by the tensor that came with it.
    for (const StorageIndex s : window.storages)
        if (!graph_.storages[s].tensors.empty()) list.push_back(graph_.storages[s].tensors.front());
    sortUnique(list);
    return list;
}

Op WindowCutter::translated(const Op& op) const {
    Op made = op;
    for (Use& use : made.inputs) {
        use.version -= entryVersion_[storageIn_[graph_.storageOf(use.tensor)]];
        use.tensor = tensorIn_[use.tensor];
    }
    for (OpOutput& output : made.outputs) output.tensor = tensorIn_[output.tensor];
    for (Write& write : made.writes) {
        write.storage = storageIn_[write.storage];
        write.versionBefore -= entryVersion_[write.storage];
    }
    return made;
}

void WindowCutter::fill(GraphWindow& window, const std::vector<TensorIndex>& tensors) {
    TrainingGraph& made = window.graph;
    entryVersion_.clear();
    for (const StorageIndex s : window.storages) {
        const Storage& storage = graph_.storages[s];
        Storage& copy = made.storages.emplace_back();
        copy.bytes = storage.bytes;
        copy.category = storage.category;
        copy.layer = storage.layer;
        copy.sessionId = storage.sessionId;
        entryVersion_.push_back(versionAt(s, window.from));
    }
    for (const TensorIndex t : tensors) {
        tensorIn_[t] = static_cast<std::int32_t>(made.tensors.size());
        made.tensors.push_back(
            {storageIn_[graph_.storageOf(t)], kNone, graph_.tensors[t].sessionId});
    }
    for (OpIndex i = window.from; i < window.to; ++i) made.ops.push_back(translated(graph_.ops[i]));
    made.layers = graph_.layers;
    made.costs = graph_.costs;
    made.framework = graph_.framework;
    made.recorded = graph_.recorded;
    made.sessionStep = graph_.sessionStep;
}

void WindowCutter::fillEvents(GraphWindow& window) const {
    const auto count = static_cast<std::size_t>(window.to - window.from);
    std::vector<std::vector<std::int32_t>> constants(count + 1), released(count + 1);  // by op + 1
    for (std::size_t i = 0; i < window.storages.size(); ++i) {
        const StorageIndex s = window.storages[i];
        const auto index = static_cast<std::int32_t>(i);
        const OpIndex born = lives_.born[s];
        if (graph_.storages[s].isConstant() || born < window.from)
            constants[std::max(0, born + 1 - window.from)].push_back(index);
        if (crossesOut(s, window) || lives_.released[s] == kNone) continue;
        // The program holds what it cannot make again (RebuildInfo::heldUntil), and here only that.
        const bool held = graph_.storages[s].isConstant() || graph_.storages[s].unseen;
        const OpIndex last = born < window.from && !held ? lives_.until[s] : lives_.released[s];
        released[std::clamp(last + 1 - window.from, 0, static_cast<std::int32_t>(count))].push_back(
            index);
    }
    for (std::size_t i = 0; i <= count; ++i) {
        using Kind = Event::Kind;
        if (i > 0) window.graph.events.push_back({Kind::Compute, static_cast<std::int32_t>(i) - 1});
        for (const std::int32_t s : constants[i])
            window.graph.events.push_back({Kind::Constant, s});
        for (const std::int32_t s : released[i]) window.graph.events.push_back({Kind::Release, s});
    }
}

void WindowCutter::fillFinals(GraphWindow& window, const std::vector<TensorIndex>& tensors) const {
    std::vector<bool> there(window.storages.size(), false);
    const auto add = [&](TensorIndex t) {
        window.graph.finalTensors.push_back(tensorIn_[t]);
        there[storageIn_[graph_.storageOf(t)]] = true;
    };
    for (const TensorIndex t : tensors)
        if (tensorUntil_[t] >= window.to) add(t);
    for (std::size_t i = 0; i < window.storages.size(); ++i) {
        const StorageIndex s = window.storages[i];
        if (!there[i] && crossesOut(s, window) && !graph_.storages[s].tensors.empty())
            add(graph_.storages[s].tensors.front());
    }
}

void WindowCutter::moveOn(const GraphWindow& window) {
    std::vector<TensorIndex> made;
    for (OpIndex i = window.from; i < window.to; ++i) {
        present_.insert(present_.end(), arrivals_[i + 1].begin(), arrivals_[i + 1].end());
        for (const OpOutput& output : graph_.ops[i].outputs) {
            if (output.makesStorage) present_.push_back(graph_.storageOf(output.tensor));
            made.push_back(output.tensor);
        }
    }
    sortUnique(made);
    defined_.insert(defined_.end(), made.begin(), made.end());
    sortUnique(defined_);
    std::erase_if(present_, [&](StorageIndex s) { return lives_.until[s] < window.to; });
    std::erase_if(defined_, [&](TensorIndex t) { return tensorUntil_[t] < window.to; });
    at_ = window.to;
}

}  // namespace hw::core

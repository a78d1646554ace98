// SPDX-License-Identifier: MIT
#include "planners/mimose/layers.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>

namespace hw::planners {
namespace {

using namespace hw::core;

// Marks `index`; true when it was not marked before.
bool mark(std::vector<bool>& marks, std::int32_t index) {
    if (marks[index]) return false;
    marks[index] = true;
    return true;
}

bool isModule(const TrainingGraph& graph, LayerIndex layer) {
    return layer != kNone && graph.layers[layer].parent != kNone;
}

// [forward op]: the layer that it belongs to, kNone outside any.
std::vector<LayerIndex> outermostModules(const TrainingGraph& graph, OpIndex end) {
    std::vector<bool> runsOps(graph.layers.size(), false);
    for (OpIndex op = 0; op < end; ++op)
        if (const LayerIndex layer = graph.ops[op].layer; isModule(graph, layer))
            runsOps[layer] = true;
    std::vector<LayerIndex> owner(end, kNone);
    for (OpIndex op = 0; op < end; ++op)
        for (LayerIndex at = graph.ops[op].layer; isModule(graph, at); at = graph.layers[at].parent)
            if (runsOps[at]) owner[op] = at;
    return owner;
}

// [forward op]: the segment that it belongs to.
std::vector<LayerIndex> segments(const TrainingGraph& graph, const ForwardPass& forward) {
    std::int64_t total = 0, count = 0;
    for (const StorageIndex s : forward.storages())
        if (forward.saved(s)) total += graph.storages[s].bytes.count(), ++count;
    const auto parts = std::max<std::int64_t>(1, std::llround(std::sqrt(count)));
    std::vector<std::int64_t> made(forward.end(), 0);
    for (const StorageIndex s : forward.storages())
        if (forward.saved(s)) made[graph.storages[s].creator] += graph.storages[s].bytes.count();
    std::vector<LayerIndex> owner(forward.end(), kNone);
    std::int64_t sum = 0;
    for (OpIndex op = 0; op < forward.end(); ++op) {
        owner[op] = static_cast<LayerIndex>(
            std::min(parts - 1, sum * parts / std::max<std::int64_t>(total, 1)));
        sum += made[op];
    }
    return owner;
}

// May the layer drop the storage: rebuilt at will, and no other layer's forward pass touches it?
bool internal(const TrainingGraph& graph, const RebuildInfo& info,
              const std::vector<LayerIndex>& owner, StorageIndex s) {
    const Storage& storage = graph.storages[s];
    if (!info.rematerializable[s] || storage.aliveAtEnd) return false;
    const LayerIndex layer = owner[storage.creator];
    for (const std::span<const OpIndex> ops : {info.chain[s], std::span(storage.readers)})
        for (const OpIndex op : ops)
            if (op < static_cast<OpIndex>(owner.size()) && owner[op] != layer) return false;
    return layer != kNone;
}

std::vector<MimoseLayer> collect(const TrainingGraph& graph, const RebuildInfo& info,
                                 const ForwardPass& forward, const std::vector<LayerIndex>& owner,
                                 bool modules) {
    std::vector<MimoseLayer> layers;
    std::map<LayerIndex, std::size_t> index;
    std::vector<bool> counted(forward.end(), false);
    for (const StorageIndex s : forward.storages()) {
        if (!internal(graph, info, owner, s)) continue;
        const LayerIndex at = owner[graph.storages[s].creator];
        const auto [entry, fresh] = index.emplace(at, layers.size());
        if (fresh)
            layers.push_back(
                {modules ? graph.layers[at].path : "segment " + std::to_string(at), {}, {}, {}});
        MimoseLayer& layer = layers[entry->second];
        layer.storages.push_back(s);
        if (forward.saved(s)) layer.bytes += graph.storages[s].bytes;
        for (const OpIndex op : info.chain[s])
            if (op < forward.end() && mark(counted, op)) layer.time += graph.ops[op].time;
    }
    std::erase_if(layers, [](const MimoseLayer& layer) { return layer.bytes == Bytes(0); });
    return layers;
}

}  // namespace

std::vector<MimoseLayer> mimoseLayers(const TrainingGraph& graph, const RebuildInfo& info,
                                      const ForwardPass& forward) {
    std::vector<MimoseLayer> layers =
        collect(graph, info, forward, outermostModules(graph, forward.end()), true);
    if (layers.empty()) layers = collect(graph, info, forward, segments(graph, forward), false);
    return layers;
}

std::vector<StorageIndex> inputStorages(const TrainingGraph& graph) {
    const bool modules = std::any_of(graph.layers.begin(), graph.layers.end(),
                                     [](const Layer& layer) { return layer.parent != kNone; });
    auto inModel = [&](const Op& op) {
        if (!modules || op.layer == kNone) return !modules;
        const Layer& layer = graph.layers[op.layer];
        return layer.parent != kNone || layer.path == "(root)";
    };
    std::vector<bool> counted(graph.storages.size(), false);
    std::vector<StorageIndex> inputs;
    for (const Op& op : graph.ops) {
        if (op.phase == Phase::Backward) break;
        if (!inModel(op)) continue;
        for (const Use& use : op.inputs) {
            const StorageIndex s = graph.storageOf(use.tensor);
            const Storage& storage = graph.storages[s];
            const bool lasting = storage.isParameter() ||
                                 storage.category == Category::OptimizerState ||
                                 storage.category == Category::Gradient;
            const bool made = !storage.isConstant() && inModel(graph.ops[storage.creator]);
            if (lasting || made || !mark(counted, s)) continue;
            inputs.push_back(s);
        }
    }
    return inputs;
}

Bytes inputBytes(const TrainingGraph& graph) {
    Bytes sum;
    for (const StorageIndex s : inputStorages(graph)) sum += graph.storages[s].bytes;
    return sum;
}

}  // namespace hw::planners

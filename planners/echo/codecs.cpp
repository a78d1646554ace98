// SPDX-License-Identifier: MIT
#include "planners/echo/codecs.h"

#include <algorithm>
#include <optional>

namespace hw::planners {
namespace {

using namespace hw::core;

// One bit an element, in whole bytes.
Bytes oneBit(Bytes stored, std::int64_t elementBytes) {
    const std::int64_t elements = (stored.count() + elementBytes - 1) / elementBytes;
    return Bytes((elements + 7) / 8);
}

constexpr std::int64_t kSmallestFloat = 2;  // bytes of an element
constexpr Bytes kMaskValue(8);              // the common value of a mask's set elements

std::optional<CodecSite> maskSite(const TrainingGraph& graph, StorageIndex s) {
    const Storage& storage = graph.storages[s];
    const Op& creator = graph.ops[storage.creator];
    if (storage.writers.empty() && creator.is("aten::native_dropout") &&
        creator.outputs.size() == 2 && graph.storageOf(creator.outputs[1].tensor) == s)
        return CodecSite{s, kMaskCodec, oneBit(storage.bytes, 1) + kMaskValue};
    // div_ in place by a number has a floating-point result.
    if (storage.writers.size() == 2 && graph.ops[storage.writers[0]].is("aten::bernoulli_") &&
        graph.ops[storage.writers[1]].name == "aten::div_.Scalar")
        return CodecSite{s, kMaskCodec, oneBit(storage.bytes, kSmallestFloat) + kMaskValue};
    return std::nullopt;
}

std::optional<CodecSite> signSite(const TrainingGraph& graph, StorageIndex s) {
    const Storage& storage = graph.storages[s];
    const bool relu = storage.writers.empty() ? graph.ops[storage.creator].is("aten::relu")
                                              : graph.ops[storage.writers.back()].is("aten::relu_");
    bool sign = false;
    for (const OpIndex reader : storage.readers) {
        const Op& op = graph.ops[reader];
        if (op.is("aten::threshold") || op.is("aten::threshold_")) return std::nullopt;
        sign |= codecServes(graph, kSignCodec, reader, s);
    }
    if (!relu || !sign) return std::nullopt;
    return CodecSite{s, kSignCodec, oneBit(storage.bytes, kSmallestFloat)};
}

std::optional<CodecSite> indexSite(const TrainingGraph& graph, StorageIndex s) {
    const Storage& storage = graph.storages[s];
    const Op& creator = graph.ops[storage.creator];
    const bool pool =
        creator.is("aten::max_pool2d_with_indices") || creator.is("aten::max_pool3d_with_indices");
    if (!pool || !storage.writers.empty() || creator.outputs.size() != 2 ||
        graph.storageOf(creator.outputs[1].tensor) != s)
        return std::nullopt;
    return CodecSite{s, kIndexCodec, Bytes((storage.bytes.count() + 1) / 2)};
}

bool touches(const TrainingGraph& graph, const Action& action, StorageIndex s) {
    if (!action.runsOp()) return false;
    const Op& op = graph.ops[action.target];
    auto on = [&](TensorIndex tensor) { return graph.storageOf(tensor) == s; };
    return std::any_of(op.inputs.begin(), op.inputs.end(),
                       [&](const Use& use) { return on(use.tensor); }) ||
           std::any_of(op.outputs.begin(), op.outputs.end(),
                       [&](const OpOutput& output) { return on(output.tensor); });
}

// Where one site's storage is encoded and decoded again: after one action, before another.
struct Gap {
    std::size_t after = 0, before = 0;
};

// Does the action read the decoded form only in ways that the codec serves, and no view of it?
bool serves(const TrainingGraph& graph, const CodecSite& site, const Action& action) {
    const Op& op = graph.ops[action.target];
    for (const Use& use : op.inputs)
        if (graph.storageOf(use.tensor) == site.storage &&
            use.tensor != graph.storages[site.storage].tensors.front())
            return false;
    for (const OpOutput& output : op.outputs)
        if (graph.storageOf(output.tensor) == site.storage) return false;
    return codecServes(graph, site.codec, action.target, site.storage);
}

std::optional<Gap> longestGap(const TrainingGraph& graph, const Schedule& schedule,
                              const CodecSite& site) {
    std::vector<std::size_t> uses;  // since the storage was made for the last time
    for (std::size_t i = 0; i < schedule.size(); ++i) {
        if (!touches(graph, schedule[i], site.storage)) continue;
        if (schedule[i].target == graph.storages[site.storage].creator) uses.clear();
        uses.push_back(i);
    }
    std::optional<Gap> best;
    for (std::size_t k = uses.size(); k-- > 1 && serves(graph, site, schedule[uses[k]]);)
        if (!best || uses[k] - uses[k - 1] > best->before - best->after)
            best = Gap{uses[k - 1], uses[k]};
    return best;
}

}  // namespace

std::vector<CodecSite> codecSites(const TrainingGraph& graph) {
    std::vector<CodecSite> sites;
    for (StorageIndex s = 0; s < static_cast<StorageIndex>(graph.storages.size()); ++s) {
        const Storage& storage = graph.storages[s];
        if (storage.isConstant() || storage.aliveAtEnd) continue;
        auto site = maskSite(graph, s);
        if (!site) site = signSite(graph, s);
        if (!site) site = indexSite(graph, s);
        if (site && site->bytes < storage.bytes) sites.push_back(*site);
    }
    return sites;
}

Schedule withCodecs(const TrainingGraph& graph, const Schedule& schedule,
                    const std::vector<CodecSite>& sites) {
    std::vector<std::vector<Action>> before(schedule.size()), after(schedule.size());
    for (const CodecSite& site : sites) {
        const auto gap = longestGap(graph, schedule, site);
        if (!gap) continue;
        // What the last reader frees goes first.
        std::size_t place = gap->after;
        while (place + 1 < gap->before && !schedule[place + 1].takesTime()) ++place;
        if (place + 1 >= gap->before) continue;
        after[place].push_back(Action::encode(site.storage, std::string(site.codec), site.bytes));
        before[gap->before].push_back(Action::decode(site.storage));
    }
    Schedule result;
    result.reserve(schedule.size() + 2 * sites.size());
    for (std::size_t i = 0; i < schedule.size(); ++i) {
        result.insert(result.end(), before[i].begin(), before[i].end());
        result.push_back(schedule[i]);
        result.insert(result.end(), after[i].begin(), after[i].end());
    }
    return result;
}

}  // namespace hw::planners

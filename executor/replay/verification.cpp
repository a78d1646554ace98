// SPDX-License-Identifier: MIT
#include "executor/replay/verification.h"

#include <algorithm>

#include "executor/replay/step.h"

namespace hw::executor {
namespace {

// Their result is memory that nothing has written yet.
bool returnsUnwritten(const std::string& name) {
    return name.rfind("aten::empty", 0) == 0 || name.rfind("aten::new_empty", 0) == 0 ||
           name.rfind("aten::resize", 0) == 0;
}

bool contains(const StorageBytes& list, core::StorageIndex s) {
    return std::any_of(list.begin(), list.end(), [&](const auto& item) { return item.first == s; });
}

}  // namespace

void Reference::beforeOp(core::OpIndex, const StorageBytes& inputs) {
    for (const auto& [s, bytes] : inputs)
        if (!known_.contains(s)) known_[s] = checksum(bytes);
}

void Reference::afterOp(const OpResults& results) {
    OpSums& sums = ops_[results.op];
    for (const TensorBytes& output : results.outputs) sums.outputs.push_back(checksum(output));
    for (const auto& [s, bytes] : results.written) {
        sums.written.push_back(checksum(bytes));
        known_[s] = sums.written.back();
    }
    const std::string& name = graph_.ops[results.op].name;
    for (const auto& [s, bytes] : results.inputs) {
        if (contains(results.written, s)) continue;
        const std::uint64_t now = checksum(bytes);
        if (known_[s] == now) continue;
        known_[s] = now;
        // Running statistics are left out when batch norm runs again.
        if (name.find("batch_norm") == std::string::npos && noted_.insert(name).second)
            notes_.push_back(
                "op " + std::to_string(results.op) + " (" + name +
                ") changes an input without saying so; plans that run it again may differ");
    }
    for (const core::OpOutput& output : graph_.ops[results.op].outputs)
        if (output.makesStorage) known_.erase(graph_.storageOf(output.tensor));
}

void Reference::keep(const FinalState& state) {
    for (const TensorBytes& tensor : state.tensors) finalSums_.push_back(checksum(tensor));
    for (const auto& [s, bytes] : state.storages) finalBytes_[s].assign(bytes.begin(), bytes.end());
    generators_ = state.generators;
}

void Comparison::count(bool equal, const OpResults* results, int output) {
    ++figures_.compared;
    if (equal) return;
    ++figures_.different;
    if (!figures_.first) figures_.first = describe(results, output);
}

Difference Comparison::describe(const OpResults* results, int output) const {
    const core::TrainingGraph& graph = reference_.graph_;
    const auto j = static_cast<std::size_t>(output);
    Difference difference;
    difference.output = output;
    if (!results) {
        difference.name = "at the end of the step";
        if (j < graph.finalTensors.size()) difference.tensor = graph.finalTensors[j];
    } else {
        const core::Op& op = graph.ops[results->op];
        difference.op = results->op;
        difference.name = op.name;
        difference.layer = layerOf(graph, results->op);
        difference.recomputed = !results->first;
        if (j < op.outputs.size())
            difference.tensor = op.outputs[j].tensor;
        else if (j < results->written.size())
            difference.storage = results->written[j].first;
    }
    if (difference.tensor != core::kNone) difference.storage = graph.storageOf(difference.tensor);
    if (difference.storage == core::kNone) return difference;
    const core::Storage& storage = graph.storages[difference.storage];
    difference.category = core::categoryName(storage.category);
    if (difference.layer.empty() && storage.layer != core::kNone)
        difference.layer = graph.layers[storage.layer].path;
    return difference;
}

void Comparison::afterOp(const OpResults& results) {
    const Reference::OpSums& sums = reference_.ops_[results.op];
    if (returnsUnwritten(reference_.graph_.ops[results.op].name)) return;
    // What an implementation makes besides, such as a mask, has nothing to be compared with.
    const std::size_t compared =
        std::min(results.outputs.size(), reference_.graph_.ops[results.op].outputs.size());
    for (std::size_t j = 0; j < compared; ++j) {
        const TensorBytes& output = results.outputs[j];
        count(j < sums.outputs.size() && checksum(output) == sums.outputs[j], &results,
              static_cast<int>(j));
        if (hasNonfinite(output)) ++figures_.nonfinite;
    }
    if (!results.outputs.empty()) return;
    for (std::size_t j = 0; j < results.written.size();
         ++j)  // writes that are no result, as of foreach ops
        count(j < sums.written.size() && checksum(results.written[j].second) == sums.written[j],
              &results, static_cast<int>(j));
}

void Origins::afterOp(const OpResults& results) {
    const Reference::OpSums& sums = reference_.ops_[results.op];
    const core::Op& op = graph_.ops[results.op];
    const auto tainted = [&](const auto& item) { return tainted_.contains(item.first); };
    const bool follows = std::any_of(results.inputs.begin(), results.inputs.end(), tainted);
    bool different = false;
    if (!returnsUnwritten(op.name))
        for (std::size_t j = 0; j < std::min(results.outputs.size(), sums.outputs.size()); ++j)
            different = different || checksum(results.outputs[j]) != sums.outputs[j];
    if (different && !follows) ops_.insert(results.op);
    for (const core::OpOutput& output : op.outputs) {
        const core::StorageIndex s = graph_.storageOf(output.tensor);
        if (different)
            tainted_.insert(s);
        else if (output.makesStorage)
            tainted_.erase(s);
    }
    for (const auto& [s, bytes] : results.written)
        if (different || (follows && results.outputs.empty())) tainted_.insert(s);
}

void Comparison::compare(const FinalState& state) {
    std::set<core::StorageIndex> bad;
    for (const auto& [s, bytes] : state.storages) {
        const auto at = reference_.finalBytes_.find(s);
        if (at == reference_.finalBytes_.end() ||
            !std::equal(bytes.begin(), bytes.end(), at->second.begin(), at->second.end()))
            bad.insert(s);
    }
    for (std::size_t i = 0; i < state.tensors.size(); ++i) {
        const core::StorageIndex s = reference_.graph_.storageOf(reference_.graph_.finalTensors[i]);
        count(!bad.contains(s) && i < reference_.finalSums_.size() &&
                  checksum(state.tensors[i]) == reference_.finalSums_[i],
              nullptr, static_cast<int>(i));
        if (hasNonfinite(state.tensors[i])) ++figures_.nonfinite;
    }
    for (std::size_t g = 0; g < state.generators.size(); ++g)
        count(g < reference_.generators_.size() && state.generators[g] == reference_.generators_[g],
              nullptr, static_cast<int>(state.tensors.size() + g));
}

}  // namespace hw::executor

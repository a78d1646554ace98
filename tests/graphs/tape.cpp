// SPDX-License-Identifier: MIT
#include "tests/graphs/tape.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

namespace hw::bench {

using namespace hw::core;

TensorIndex Tape::fresh(std::int64_t bytes, Category category) {
    Storage storage;
    storage.bytes = Bytes(bytes);
    storage.category = category;
    graph_.storages.push_back(std::move(storage));
    versions_.push_back(0);
    Tensor tensor;
    tensor.storage = static_cast<StorageIndex>(graph_.storages.size()) - 1;
    graph_.tensors.push_back(tensor);
    tensorBytes_.push_back(bytes);
    return static_cast<TensorIndex>(graph_.tensors.size()) - 1;
}

TensorIndex Tape::constant(std::int64_t bytes, Category category) {
    const TensorIndex tensor = fresh(bytes, category);
    graph_.events.push_back({Event::Kind::Constant, graph_.storageOf(tensor)});
    if (category == Category::Parameter) parameters_.push_back(tensor);
    return tensor;
}

void Tape::layer(const std::string& path) {
    layer_ = static_cast<LayerIndex>(graph_.layers.size());
    graph_.layers.push_back({path, "", kNone});
}

Use Tape::use(TensorIndex tensor) const {
    return {tensor, versions_[graph_.storageOf(tensor)]};
}

Nanoseconds Tape::moving(std::int64_t bytes) const {
    return Nanoseconds(std::llround(1e9 * static_cast<double>(bytes) / bytesPerSecond_) + 1);
}

void Tape::push(Op op) {
    op.phase = phase_;
    op.layer = layer_;
    for (const Write& write : op.writes) ++versions_[write.storage];
    graph_.events.push_back({Event::Kind::Compute, static_cast<OpIndex>(graph_.ops.size())});
    graph_.ops.push_back(std::move(op));
}

std::vector<TensorIndex> Tape::apply(const Operation& operation) {
    Op op;
    op.name = operation.name;
    op.time = operation.time;
    for (const TensorIndex tensor : operation.inputs) op.inputs.push_back(use(tensor));
    Node node{operation, {}, {}, layer_};
    for (const std::size_t i : operation.savedInputs) node.saved.push_back(op.inputs[i]);
    for (const Result& result : operation.results) {
        TensorIndex tensor = kNone;
        if (result.view) {
            tensor = static_cast<TensorIndex>(graph_.tensors.size());
            graph_.tensors.push_back({graph_.storageOf(operation.inputs.front()), kNone, kNone});
            tensorBytes_.push_back(result.bytes);
        } else {
            tensor = fresh(result.bytes, Category::Activation);
        }
        node.results.push_back(tensor);
        op.outputs.push_back({tensor, !result.view});
    }
    if (operation.results.empty()) {
        const Use written = op.inputs.front();
        op.writes.push_back({graph_.storageOf(written.tensor), written.version});
        op.outputs.push_back({written.tensor, false});
        node.results.push_back(written.tensor);
    }
    push(std::move(op));
    for (const std::size_t i : operation.savedResults) node.saved.push_back(use(node.results[i]));
    nodes_.push_back(node);
    return node.results;
}

// Adds a gradient to what `tensor` has got so far.
void Tape::receive(TensorIndex tensor, TensorIndex gradient) {
    const auto [at, first] = gradients_.emplace(tensor, gradient);
    ++holders_[gradient];
    if (first) return;
    const TensorIndex held = at->second;
    --holders_[gradient];
    const std::int64_t bytes = tensorBytes_[tensor];
    Op sum;
    sum.inputs = {use(held), use(gradient)};
    sum.time = moving(3 * bytes);
    if (holders_[held] == 1) {
        sum.name = "add_";
        sum.writes.push_back({graph_.storageOf(held), use(held).version});
        sum.outputs.push_back({held, false});
        push(std::move(sum));
        return;
    }
    --holders_[held];
    at->second = fresh(bytes, graph_.storages[graph_.storageOf(held)].category);
    holders_[at->second] = 1;
    sum.name = "add";
    sum.outputs.push_back({at->second, true});
    push(std::move(sum));
}

void Tape::backward(const Node& node) {
    const Operation& operation = node.operation;
    layer_ = node.layer;
    Op op;
    op.name = operation.name + "_backward";
    op.time = operation.backwardTime;
    for (const TensorIndex result : node.results) {
        const auto gradient = gradients_.find(result);
        if (gradient == gradients_.end()) continue;
        op.inputs.push_back(use(gradient->second));
        gradients_.erase(gradient);
    }
    if (op.inputs.empty()) return;
    const TensorIndex arrived = op.inputs.front().tensor;
    if (operation.passesGradient) {
        for (const std::size_t i : operation.wanted) receive(operation.inputs[i], arrived);
        --holders_[arrived];
        return;
    }
    for (const Use& gradient : op.inputs) --holders_[gradient.tensor];
    op.inputs.insert(op.inputs.end(), node.saved.begin(), node.saved.end());
    std::vector<std::pair<TensorIndex, TensorIndex>> made;
    for (const std::size_t i : operation.wanted) {
        const TensorIndex tensor = operation.inputs[i];
        const bool weight =
            graph_.storages[graph_.storageOf(tensor)].category == Category::Parameter;
        made.emplace_back(
            tensor, fresh(tensorBytes_[tensor], weight ? Category::Gradient : Category::Temporary));
        op.outputs.push_back({made.back().second, true});
    }
    push(std::move(op));
    for (const auto& [tensor, gradient] : made) receive(tensor, gradient);
}

void Tape::update(TensorIndex parameter, TensorIndex gradient) {
    Op op;
    op.name = "sgd_";
    op.inputs = {use(parameter), use(gradient)};
    op.writes.push_back({graph_.storageOf(parameter), use(parameter).version});
    op.outputs.push_back({parameter, false});
    op.time = moving(3 * tensorBytes_[parameter]);
    push(std::move(op));
}

void Tape::releaseAfterLastUse() {
    std::vector<OpIndex> last(graph_.storages.size(), kNone);
    for (OpIndex i = 0; i < static_cast<OpIndex>(graph_.ops.size()); ++i) {
        for (const Use& input : graph_.ops[i].inputs) last[graph_.storageOf(input.tensor)] = i;
        for (const OpOutput& output : graph_.ops[i].outputs)
            last[graph_.storageOf(output.tensor)] = i;
    }
    std::vector<std::vector<StorageIndex>> gone(graph_.ops.size());
    for (StorageIndex s = 0; s < static_cast<StorageIndex>(last.size()); ++s)
        if (last[s] != kNone && graph_.storages[s].category != Category::Parameter)
            gone[last[s]].push_back(s);
    std::vector<Event> events;
    for (const Event& event : graph_.events) {
        events.push_back(event);
        if (event.kind != Event::Kind::Compute) continue;
        for (const StorageIndex s : gone[event.index]) events.push_back({Event::Kind::Release, s});
    }
    graph_.events = std::move(events);
}

TrainingGraph Tape::finish(TensorIndex loss) {
    phase_ = Phase::Backward;
    Op one;
    one.name = "ones_like";
    one.inputs = {use(loss)};
    one.time = moving(1);
    const TensorIndex seed = fresh(tensorBytes_[loss], Category::Temporary);
    one.outputs.push_back({seed, true});
    push(std::move(one));
    receive(loss, seed);
    for (auto node = nodes_.rbegin(); node != nodes_.rend(); ++node) backward(*node);
    phase_ = Phase::Optimizer;
    layer("(optimizer)");
    for (const TensorIndex parameter : parameters_) {
        if (const auto gradient = gradients_.find(parameter); gradient != gradients_.end())
            update(parameter, gradient->second);
        graph_.finalTensors.push_back(parameter);
    }
    releaseAfterLastUse();
    graph_.framework = "generated";
    if (const std::string wrong = graph_.finish(); !wrong.empty())
        throw std::logic_error("the generated network is inconsistent: " + wrong);
    return std::move(graph_);
}

}  // namespace hw::bench

// SPDX-License-Identifier: MIT
#include "bench/made_up_menu.h"

#include <algorithm>
#include <cmath>

namespace hw::bench {
namespace {

using namespace hw::core;

Nanoseconds scaled(Nanoseconds time, double factor) {
    return Nanoseconds(std::llround(static_cast<double>(time.count()) * factor));
}

// Without the namespace and the overload.
std::string plainName(const Op& op) {
    const std::size_t begin = op.name.starts_with("aten::") ? 6 : 0;
    return op.name.substr(begin, op.name.find('.', begin) - begin);
}

bool isProduct(std::string name) {
    if (const auto at = name.rfind("_backward"); at != std::string::npos) name.resize(at);
    constexpr const char* kNames[] = {"convolution", "linear", "mm", "bmm", "addmm"};
    return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

Bytes madeBytes(const TrainingGraph& graph, const Op& op) {
    Bytes sum;
    for (const OpOutput& output : op.outputs)
        if (output.makesStorage) sum += graph.storages[graph.storageOf(output.tensor)].bytes;
    return sum;
}

void addAlgorithms(const TrainingGraph& graph, OpIndex index, Menu& menu) {
    const Op& op = graph.ops[index];
    const Bytes made = madeBytes(graph, op);
    const auto add = [&](const char* name, double factor, Bytes workspace) {
        Implementation one;
        one.op = index;
        one.name = name;
        one.time = scaled(op.time, factor);
        one.workspace = workspace;
        menu.implementations.push_back(std::move(one));
    };
    add("fast", 0.75, std::max(op.workspace, made));
    add("fastest", 0.65, std::max(op.workspace, made * 4));
    if (op.workspace > Bytes(0)) add("lean", 1.25, Bytes(0));
}

// The gradient op of `forward`: of that name, reading one of its results or, failing that, its
// first input.
OpIndex gradientOf(const TrainingGraph& graph, OpIndex forward, const std::string& name) {
    const auto readerOf = [&](StorageIndex s) {
        for (const OpIndex reader : graph.storages[s].readers)
            if (reader > forward && plainName(graph.ops[reader]) == name) return reader;
        return kNone;
    };
    const Op& op = graph.ops[forward];
    for (const OpOutput& output : op.outputs)
        if (const OpIndex found = readerOf(graph.storageOf(output.tensor)); found != kNone)
            return found;
    return op.inputs.empty() ? kNone : readerOf(graph.storageOf(op.inputs.front().tensor));
}

void addIfPossible(const TrainingGraph& graph, Implementation one, Menu& menu) {
    if (implementationFault(graph, one).empty()) menu.implementations.push_back(std::move(one));
}

void addNormalization(const TrainingGraph& graph, OpIndex index, Menu& menu) {
    const Op& op = graph.ops[index];
    Implementation one;
    one.op = index;
    one.name = "from-output";
    one.kind = ImplementationKind::OutputActivated;
    one.backward = gradientOf(graph, index, plainName(op) + "_backward");
    if (one.backward == kNone) return;
    one.backwardTime = scaled(graph.ops[one.backward].time, 1.1);
    one.insteadOf = graph.storageOf(op.inputs.front().tensor);
    addIfPossible(graph, std::move(one), menu);
}

void addRelu(const TrainingGraph& graph, OpIndex index, Menu& menu) {
    const Op& op = graph.ops[index];
    const bool captured = op.name.starts_with("aten::");
    const OpIndex gradient =
        gradientOf(graph, index, captured ? "threshold_backward" : "relu_backward");
    const StorageIndex result = graph.storageOf(op.outputs.front().tensor);
    if (gradient != kNone) {
        Implementation mask;
        mask.op = index;
        mask.name = "mask";
        mask.kind = ImplementationKind::IntermediateActivated;
        mask.time = scaled(op.time, 1.1);
        mask.backward = gradient;
        mask.backwardTime = scaled(graph.ops[gradient].time, 1.1);
        mask.insteadOf = result;
        mask.bytes = Bytes((graph.storages[result].bytes.count() + 31) / 32);
        addIfPossible(graph, std::move(mask), menu);
    }
    Implementation inPlace;
    inPlace.op = index;
    inPlace.name = "in-place";
    inPlace.kind = ImplementationKind::InPlace;
    inPlace.takes = graph.storageOf(op.inputs.front().tensor);
    addIfPossible(graph, std::move(inPlace), menu);
}

}  // namespace

Menu madeUpMenu(const TrainingGraph& graph) {
    Menu menu;
    for (OpIndex i = 0; i < static_cast<OpIndex>(graph.ops.size()); ++i) {
        const std::string name = plainName(graph.ops[i]);
        if (isProduct(name)) addAlgorithms(graph, i, menu);
        if (name == "batch_norm" || name == "native_layer_norm") addNormalization(graph, i, menu);
        if (name == "relu" || name == "relu_") addRelu(graph, i, menu);
    }
    return menu;
}

}  // namespace hw::bench

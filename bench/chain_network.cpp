// SPDX-License-Identifier: MIT
#include "bench/chain_network.h"

#include <cstdlib>
#include <iostream>

namespace hw::bench {
namespace {

using namespace hw::core;

TensorIndex unitOp(TrainingGraph& graph, const char* name, Phase phase,
                   const std::vector<TensorIndex>& inputs) {
    Storage storage;
    storage.bytes = Bytes(1);
    graph.storages.push_back(storage);
    graph.tensors.push_back({static_cast<StorageIndex>(graph.storages.size()) - 1, kNone, kNone});
    const auto made = static_cast<TensorIndex>(graph.tensors.size()) - 1;
    Op op;
    op.name = name;
    op.phase = phase;
    op.time = Nanoseconds(1);
    for (const TensorIndex input : inputs) op.inputs.push_back({input, 0});
    op.outputs.push_back({made, true});
    graph.events.push_back({Event::Kind::Compute, static_cast<OpIndex>(graph.ops.size())});
    graph.ops.push_back(std::move(op));
    return made;
}

}  // namespace

TrainingGraph chainNetwork(int layers) {
    TrainingGraph graph;
    graph.framework = "simrd";  // DTR follows its simulator to the letter
    std::vector<TensorIndex> activations;
    for (int i = 0; i < layers; ++i) {
        std::vector<TensorIndex> inputs;
        if (i > 0) inputs.push_back(activations.back());
        activations.push_back(unitOp(graph, "forward", Phase::Forward, inputs));
    }
    const auto release = [&](TensorIndex tensor) {
        graph.events.push_back({Event::Kind::Release, graph.tensors[tensor].storage});
    };
    TensorIndex gradient = kNone;
    for (int i = layers - 1; i >= 0; --i) {
        release(activations[i]);
        std::vector<TensorIndex> inputs;
        if (i > 0 && gradient != kNone) inputs.push_back(activations[i - 1]);
        if (gradient != kNone) inputs.push_back(gradient);
        const TensorIndex next = unitOp(graph, "backward", Phase::Backward, inputs);
        if (gradient != kNone) release(gradient);
        gradient = next;
    }
    graph.finalTensors.push_back(gradient);
    if (const std::string wrong = graph.finish(); !wrong.empty()) {
        std::cerr << "chain network: " << wrong << '\n';
        std::abort();
    }
    return graph;
}

}  // namespace hw::bench

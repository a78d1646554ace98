// SPDX-License-Identifier: MIT
#include "executor/replay/training.h"

namespace hw::executor {
namespace {

using core::kNone;
using core::OpIndex;
using core::StorageIndex;

struct Trained {
    std::vector<std::vector<std::byte>> losses;
    StepState left;                             // for the next step
    std::vector<std::vector<std::byte>> final;  // elements of what the last step left, by tensor
};

core::Result<Trained> train(const Step& step, int steps, const Execution& execution, OpIndex loss) {
    Trained trained;
    for (int i = 0; i < steps; ++i) {
        RunOptions options;
        options.arena = execution.arena;
        options.watched = loss;
        options.from = i == 0 ? nullptr : &trained.left;
        StepState next;
        const bool last = i + 1 == steps;
        auto result =
            execution.interpreter->run(*execution.schedule, options, [&](const FinalState& state) {
                for (const auto& [s, bytes] : state.storages)
                    if (step.graph.storages[s].isConstant())
                        next.contents[s].assign(bytes.begin(), bytes.end());
                // By tensor: a storage may be larger than what is left in it. That of a mean loss
                // keeps the room of all its elements, which nothing has written.
                if (last)
                    for (const TensorBytes& tensor : state.tensors)
                        trained.final.push_back(elementsOf(tensor));
                next.generators = state.generators;
            });
        if (!result) return result.error();
        trained.left = std::move(next);
        trained.losses.push_back(std::move(result->watched));
    }
    return trained;
}

std::string placeOf(const core::TrainingGraph& graph, StorageIndex s) {
    const core::Storage& storage = graph.storages[s];
    std::string place(core::categoryName(storage.category));
    if (storage.layer != kNone) place += " of " + graph.layers[storage.layer].path;
    return place + " (storage " + std::to_string(s) + ")";
}

// What both leave, bit by bit.
void compareFinal(const Step& step, const Trained& reference, const Trained& trained,
                  Training& training) {
    const auto count = [&](bool same, const auto& place) {
        ++training.finalCompared;
        if (same) return;
        ++training.finalDifferent;
        if (training.firstDifference.empty())
            training.firstDifference = place() + " after the last step";
    };
    const core::TrainingGraph& graph = step.graph;
    for (std::size_t t = 0; t < reference.final.size(); ++t)
        count(trained.final[t] == reference.final[t],
              [&] { return placeOf(graph, graph.storageOf(graph.finalTensors[t])); });
    for (const auto& [s, bytes] : reference.left.contents) {
        const auto found = trained.left.contents.find(s);
        count(found != trained.left.contents.end() && found->second == bytes,
              [&, s = s] { return placeOf(graph, s); });
        const core::Category category = graph.storages[s].category;
        if (category == core::Category::OptimizerState) ++training.optimizerStates;
        if (category != core::Category::Parameter) continue;
        ++training.parameters;
        std::vector<std::byte> first(bytes.size());
        fillConstant(step, s, first);
        if (first != bytes) ++training.parametersMoved;
    }
    count(trained.left.generators == reference.left.generators,
          [] { return std::string("a generator"); });
}

std::vector<double> numbers(const std::vector<std::vector<std::byte>>& losses, ElementKind kind) {
    std::vector<double> values;
    for (const auto& bytes : losses)
        if (const auto value = numberOf(bytes, kind)) values.push_back(*value);
    return values;
}

// State that the step replaces by new storages instead of writing it: the link is not recorded.
std::string replacedState(const core::TrainingGraph& graph) {
    std::size_t count = 0;
    for (const core::Storage& storage : graph.storages)
        if (storage.isConstant() && !storage.aliveAtEnd && storage.bytes > core::Bytes(0) &&
            (storage.category == core::Category::Parameter ||
             storage.category == core::Category::OptimizerState))
            ++count;
    return count == 0 ? std::string()
                      : std::to_string(count) +
                            " parameters or optimizer states are replaced in the step, not "
                            "written: every step starts with them as recorded";
}

}  // namespace

OpIndex lossOp(const Step& step) {
    OpIndex found = kNone;
    bool inLoss = false;
    // What comes behind the backward pass, as norms for clipping gradients do, is no loss.
    auto end = static_cast<OpIndex>(step.graph.ops.size());
    while (end > 0 && step.graph.ops[end - 1].phase != core::Phase::Backward) --end;
    if (end == 0) end = static_cast<OpIndex>(step.graph.ops.size());
    for (OpIndex i = 0; i < end; ++i) {
        const core::Op& op = step.graph.ops[i];
        // The gradient of the loss by itself comes right behind it, and may count as forward.
        if (op.phase != core::Phase::Forward || op.outputs.empty() ||
            !op.outputs.front().makesStorage || op.name.starts_with("aten::ones_like"))
            continue;
        const TensorShape& shape = step.shapes[op.outputs.front().tensor];
        if (!shape.sizes.empty() || elementKind(shape.dtype) == ElementKind::Other) continue;
        const bool loss = layerOf(step.graph, i) == "(loss)";
        if (inLoss && !loss) continue;
        inLoss = loss;
        found = i;
    }
    return found;
}

core::Result<Training> trainSteps(const Step& step, int steps, const Execution& unplanned,
                                  const Execution* planned) {
    const OpIndex loss = lossOp(step);
    auto reference = train(step, steps, unplanned, loss);
    if (!reference) return reference.error();
    Training training;
    training.steps = steps;
    const ElementKind kind =
        loss == kNone ? ElementKind::Other
                      : elementKind(step.shapes[step.graph.ops[loss].outputs.front().tensor].dtype);
    training.unplannedLosses = numbers(reference->losses, kind);
    training.note = replacedState(step.graph);
    if (!planned) return training;

    auto trained = train(step, steps, *planned, loss);
    if (!trained) return trained.error();
    training.losses = numbers(trained->losses, kind);
    for (std::size_t i = 0; i < reference->losses.size(); ++i) {
        if (trained->losses[i] == reference->losses[i]) continue;
        if (++training.lossesDifferent == 1)
            training.firstDifference = "the loss of step " + std::to_string(i);
    }
    compareFinal(step, *reference, *trained, training);
    return training;
}

}  // namespace hw::executor

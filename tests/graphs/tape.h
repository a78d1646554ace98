// SPDX-License-Identifier: MIT
// Writes the forward pass of a network down and derives the rest of its training step.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/graph/training_graph.h"

namespace hw::bench {

/// One result of an operation: a fresh storage of `bytes`, or a view of them on its first input.
struct Result {
    std::int64_t bytes = 0;
    bool view = false;
    bool differentiable = true;
};

/// One op of the forward pass and what its gradient op reads, makes and costs.
struct Operation {
    std::string name;
    std::vector<core::TensorIndex> inputs;
    std::vector<Result> results;  // none: it writes its first input in place
    core::Nanoseconds time, backwardTime;
    std::vector<std::size_t> savedInputs;   // by position: read by its gradient op
    std::vector<std::size_t> savedResults;  // likewise; 0 of an in-place op is what it wrote
    std::vector<std::size_t> wanted;        // inputs that get a gradient
    bool passesGradient = false;            // the gradients are the result's own (a sum's)
};

/// A training step as a framework runs it: the forward pass as written, gradient ops in reverse
/// order, `name_backward` each, one gradient for each wanted input; a further gradient of the same
/// tensor is added in place where nobody else holds the first, otherwise into a fresh storage; then
/// one in-place SGD update for each parameter. Every storage is released after its last use, the
/// parameters stay.
class Tape {
public:
    /// Time of moving bytes once, for the sums and updates that the tape adds.
    explicit Tape(double bytesPerSecond) : bytesPerSecond_(bytesPerSecond) {}

    core::TensorIndex parameter(std::int64_t bytes) {
        return constant(bytes, core::Category::Parameter);
    }
    core::TensorIndex input(std::int64_t bytes) { return constant(bytes, core::Category::Input); }
    void layer(const std::string& path);

    /// Runs an operation; its results, for an in-place one the tensor written.
    std::vector<core::TensorIndex> apply(const Operation& operation);

    /// Derives the backward pass from `loss` and the updates. The tape is used up.
    core::TrainingGraph finish(core::TensorIndex loss);

private:
    struct Node {
        Operation operation;
        std::vector<core::TensorIndex> results;
        std::vector<core::Use> saved;
        core::LayerIndex layer;
    };

    core::TensorIndex constant(std::int64_t bytes, core::Category category);
    core::TensorIndex fresh(std::int64_t bytes, core::Category category);
    core::Use use(core::TensorIndex tensor) const;
    core::Nanoseconds moving(std::int64_t bytes) const;
    void push(core::Op op);
    void backward(const Node& node);
    void receive(core::TensorIndex tensor, core::TensorIndex gradient);
    void update(core::TensorIndex parameter, core::TensorIndex gradient);
    void releaseAfterLastUse();

    core::TrainingGraph graph_;
    double bytesPerSecond_;
    core::Phase phase_ = core::Phase::Forward;
    core::LayerIndex layer_ = core::kNone;
    std::vector<std::int32_t> versions_;     // per storage
    std::vector<std::int64_t> tensorBytes_;  // a view's own
    std::vector<Node> nodes_;
    std::vector<core::TensorIndex> parameters_;
    std::map<core::TensorIndex, core::TensorIndex> gradients_;
    std::map<core::TensorIndex, int> holders_;  // of a gradient: entries of gradients_
};

}  // namespace hw::bench

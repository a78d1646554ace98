// SPDX-License-Identifier: MIT
#include "tests/graphs/networks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "tests/graphs/tape.h"

namespace hw::bench {
namespace {

using namespace hw::core;

constexpr std::int64_t kFloat = 4;  // bytes
constexpr std::int64_t kLabel = 8;

// Ops with their times.
class Builder {
public:
    explicit Builder(const Device& device) : device_(device), tape_(device.bytesPerSecond) {}
    Tape& tape() { return tape_; }

    /// y = x w: a convolution or a matrix product of `products` multiplications and additions.
    TensorIndex product(const char* name, TensorIndex x, TensorIndex weight, std::int64_t bytes,
                        double products, bool wantsInputGradient = true) {
        Operation op;
        op.name = name;
        op.inputs = {x, weight};
        op.results = {{bytes}};
        op.time = arithmetic(2 * products);
        op.backwardTime = arithmetic((wantsInputGradient ? 4 : 2) * products);
        op.savedInputs = {0, 1};
        op.wanted = {1};
        if (wantsInputGradient) op.wanted.push_back(0);
        return tape_.apply(op).front();
    }

    TensorIndex batchNorm(TensorIndex x, std::int64_t bytes, int channels) {
        Operation op;
        op.name = "batch_norm";
        op.inputs = {x, tape_.parameter(kFloat * 2 * channels)};
        op.results = {{bytes}, {kFloat * 2 * channels, false, false}};  // and its statistics
        op.time = moving(3 * bytes);
        op.backwardTime = moving(5 * bytes);
        op.savedInputs = {0, 1};
        op.savedResults = {1};
        op.wanted = {0, 1};
        return tape_.apply(op).front();
    }

    /// ReLU, sigmoid, tanh: the gradient needs the result only.
    TensorIndex activation(const char* name, TensorIndex x, std::int64_t bytes, bool inPlace) {
        Operation op;
        op.name = name;
        op.inputs = {x};
        if (!inPlace) op.results = {{bytes}};
        op.time = moving(2 * bytes);
        op.backwardTime = moving(3 * bytes);
        op.savedResults = {0};
        op.wanted = {0};
        return tape_.apply(op).front();
    }

    TensorIndex sum(TensorIndex a, TensorIndex b, std::int64_t bytes) {
        Operation op;
        op.name = "add";
        op.inputs = {a, b};
        op.results = {{bytes}};
        op.time = moving(3 * bytes);
        op.wanted = {0, 1};
        op.passesGradient = true;
        return tape_.apply(op).front();
    }

    TensorIndex multiply(TensorIndex a, TensorIndex b, std::int64_t bytes) {
        Operation op;
        op.name = "mul";
        op.inputs = {a, b};
        op.results = {{bytes}};
        op.time = moving(3 * bytes);
        op.backwardTime = moving(5 * bytes);
        op.savedInputs = {0, 1};
        op.wanted = {0, 1};
        return tape_.apply(op).front();
    }

    /// Pooling by mean: the gradient needs its shape only.
    TensorIndex pool(TensorIndex x, std::int64_t from, std::int64_t to) {
        Operation op;
        op.name = "avg_pool";
        op.inputs = {x};
        op.results = {{to}};
        op.time = op.backwardTime = moving(from + to);
        op.wanted = {0};
        return tape_.apply(op).front();
    }

    TensorIndex loss(TensorIndex logits, TensorIndex target, std::int64_t bytes) {
        Operation op;
        op.name = "softmax_loss";
        op.inputs = {logits, target};
        op.results = {{kFloat}, {bytes, false, false}};  // and the probabilities
        op.time = moving(3 * bytes);
        op.backwardTime = moving(2 * bytes);
        op.savedInputs = {1};
        op.savedResults = {1};
        op.wanted = {0};
        return tape_.apply(op).front();
    }

    /// Equal views of a tensor; their gradients are put together again.
    std::vector<TensorIndex> split(TensorIndex x, int parts, std::int64_t bytes) {
        Operation op;
        op.name = "split";
        op.inputs = {x};
        op.results.assign(parts, {bytes / parts, true, true});
        op.time = Nanoseconds(1);
        op.backwardTime = moving(2 * bytes);
        op.wanted = {0};
        return tape_.apply(op);
    }

private:
    Nanoseconds seconds(double time) const {
        return Nanoseconds(std::llround(1e9 * (time + device_.launch)));
    }
    Nanoseconds arithmetic(double operations) const { return seconds(operations / device_.flops); }
    Nanoseconds moving(std::int64_t bytes) const {
        return seconds(static_cast<double>(bytes) / device_.bytesPerSecond);
    }

    Device device_;
    Tape tape_;
};

// The blocks of each stage, in the proportion of the 152-layer network.
std::array<int, 4> stages(int layers) {
    const int blocks = std::max(4, (layers - 2) / 3);
    std::array<int, 4> counts{std::max(1, blocks * 3 / 50), std::max(1, blocks * 8 / 50), 0,
                              std::max(1, blocks * 3 / 50)};
    counts[2] = blocks - counts[0] - counts[1] - counts[3];
    return counts;
}

class Residual {
public:
    explicit Residual(const ResidualNetwork& network) : network_(network), b_(network.device) {}

    TrainingGraph run() {
        Tape& tape = b_.tape();
        tape.layer("stem");
        const TensorIndex target = tape.input(kLabel * network_.batch);
        side_ = network_.image / 2;
        TensorIndex x = tape.input(kFloat * network_.batch * 3 * network_.image * network_.image);
        x = convolution(x, 3, 64, 7, false);
        x = b_.pool(x, bytes(64), bytes(64) / 4);
        side_ /= 2;
        int channels = 64;
        const std::array<int, 4> counts = stages(network_.layers);
        for (int stage = 0; stage < 4; ++stage) {
            for (int block = 0; block < counts[stage]; ++block) {
                tape.layer("stage" + std::to_string(stage + 1) + "." + std::to_string(block));
                x = bottleneck(x, channels, 64 << stage, stage > 0 && block == 0 ? 2 : 1);
                channels = 4 * (64 << stage);
            }
        }
        tape.layer("classifier");
        x = normalized(x, channels);
        x = b_.pool(x, bytes(channels), kFloat * network_.batch * channels);
        const std::int64_t logits = std::int64_t{network_.batch} * network_.classes * kFloat;
        x = b_.product("linear", x, tape.parameter(kFloat * channels * network_.classes), logits,
                       static_cast<double>(network_.batch) * channels * network_.classes);
        return tape.finish(b_.loss(x, target, logits));
    }

private:
    std::int64_t bytes(int channels) const {
        return std::int64_t{network_.batch} * channels * side_ * side_ * kFloat;
    }
    TensorIndex convolution(TensorIndex x, int in, int out, int kernel, bool inputGradient = true) {
        const std::int64_t weights = std::int64_t{in} * out * kernel * kernel;
        return b_.product("convolution", x, b_.tape().parameter(weights * kFloat), bytes(out),
                          static_cast<double>(weights) * network_.batch * side_ * side_,
                          inputGradient);
    }
    TensorIndex normalized(TensorIndex x, int channels) {
        x = b_.batchNorm(x, bytes(channels), channels);
        return b_.activation("relu", x, bytes(channels), network_.inPlaceRelu);
    }
    TensorIndex bottleneck(TensorIndex x, int in, int width, int stride) {
        const TensorIndex first = normalized(x, in);
        TensorIndex y = convolution(first, in, width, 1);
        y = normalized(y, width);
        side_ /= stride;
        y = convolution(y, width, width, 3);
        y = normalized(y, width);
        y = convolution(y, width, 4 * width, 1);
        const TensorIndex shortcut =
            in == 4 * width && stride == 1 ? x : convolution(first, in, 4 * width, 1);
        return b_.sum(y, shortcut, bytes(4 * width));
    }

    ResidualNetwork network_;
    Builder b_;
    int side_ = 0;
};

class Lstm {
public:
    explicit Lstm(const LstmNetwork& network)
        : network_(network), b_(network.device), state_(cells(network.units)) {}

    TrainingGraph run() {
        Tape& tape = b_.tape();
        for (int layer = 0; layer < network_.layers; ++layer) {
            const std::int64_t in = layer == 0 ? network_.inputs : network_.units;
            weights_.push_back({tape.parameter(in * 4 * network_.units * kFloat),
                                tape.parameter(4 * kFloat * network_.units * network_.units)});
            hidden_.push_back(tape.input(state_));
            memory_.push_back(tape.input(state_));
        }
        const TensorIndex output =
            tape.parameter(kFloat * network_.units * std::int64_t{network_.classes});
        TensorIndex total = kNone;
        for (int step = 0; step < network_.steps; ++step) {
            TensorIndex x = tape.input(cells(network_.inputs));
            for (int layer = 0; layer < network_.layers; ++layer) {
                tape.layer("lstm" + std::to_string(layer) + "." + std::to_string(step));
                x = cell(x, layer, step);
            }
            tape.layer("classifier." + std::to_string(step));
            const TensorIndex target = tape.input(kLabel * network_.batch);
            const TensorIndex logits = b_.product("linear", x, output, cells(network_.classes),
                                                  products(network_.units, network_.classes));
            const TensorIndex loss = b_.loss(logits, target, cells(network_.classes));
            total = step == 0 ? loss : b_.sum(total, loss, kFloat);
        }
        return tape.finish(total);
    }

private:
    std::int64_t cells(int width) const { return std::int64_t{network_.batch} * width * kFloat; }
    double products(int in, int out) const {
        return static_cast<double>(network_.batch) * in * out;
    }
    TensorIndex cell(TensorIndex x, int layer, int step) {
        const int in = layer == 0 ? network_.inputs : network_.units;
        const int gates = 4 * network_.units;
        const TensorIndex fromInput = b_.product("linear", x, weights_[layer].input, cells(gates),
                                                 products(in, gates), layer > 0);
        const TensorIndex fromState =
            b_.product("linear", hidden_[layer], weights_[layer].state, cells(gates),
                       products(network_.units, gates), step > 0);
        const auto parts = b_.split(b_.sum(fromInput, fromState, cells(gates)), 4, cells(gates));
        const TensorIndex write = b_.activation("sigmoid", parts[0], state_, false);
        const TensorIndex forget = b_.activation("sigmoid", parts[1], state_, false);
        const TensorIndex out = b_.activation("sigmoid", parts[2], state_, false);
        const TensorIndex candidate = b_.activation("tanh", parts[3], state_, false);
        memory_[layer] = b_.sum(b_.multiply(forget, memory_[layer], state_),
                                b_.multiply(write, candidate, state_), state_);
        hidden_[layer] =
            b_.multiply(out, b_.activation("tanh", memory_[layer], state_, false), state_);
        return hidden_[layer];
    }

    struct Weights {
        TensorIndex input, state;
    };
    LstmNetwork network_;
    Builder b_;
    std::int64_t state_;  // bytes of one layer's state
    std::vector<Weights> weights_;
    std::vector<TensorIndex> hidden_, memory_;
};

}  // namespace

TrainingGraph generate(const ResidualNetwork& network) {
    return Residual(network).run();
}

TrainingGraph generate(const LstmNetwork& network) {
    return Lstm(network).run();
}

}  // namespace hw::bench

// SPDX-License-Identifier: MIT
// Small graphs for tests, written down like a program.
#pragma once

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "core/graph/training_graph.h"

namespace hw::test {

class GraphBuilder {
public:
    core::TensorIndex constant(std::int64_t bytes) {
        const auto tensor = newStorage(bytes);
        graph_.events.push_back({core::Event::Kind::Constant, storage(tensor)});
        return tensor;
    }

    /// An op that makes one fresh storage for each size.
    std::vector<core::TensorIndex> op(const std::string& name,
                                      const std::vector<core::TensorIndex>& inputs,
                                      const std::vector<std::int64_t>& sizes, std::int64_t time = 1,
                                      std::int64_t workspace = 0) {
        core::Op made = newOp(name, inputs, time);
        made.workspace = core::Bytes(workspace);
        std::vector<core::TensorIndex> outputs;
        for (const std::int64_t bytes : sizes) {
            outputs.push_back(newStorage(bytes));
            made.outputs.push_back({outputs.back(), true});
        }
        push(std::move(made));
        return outputs;
    }
    core::TensorIndex one(const std::string& name, const std::vector<core::TensorIndex>& inputs,
                          std::int64_t bytes, std::int64_t time = 1, std::int64_t workspace = 0) {
        return op(name, inputs, {bytes}, time, workspace).front();
    }

    /// A view that its op also reads `others` for.
    core::TensorIndex view(core::TensorIndex of, std::int64_t time = 0,
                           const std::vector<core::TensorIndex>& others = {}) {
        const auto tensor = static_cast<core::TensorIndex>(graph_.tensors.size());
        graph_.tensors.push_back({storage(of), core::kNone, core::kNone});
        std::vector<core::TensorIndex> inputs{of};
        inputs.insert(inputs.end(), others.begin(), others.end());
        core::Op made = newOp("view", inputs, time);
        made.outputs.push_back({tensor, false});
        push(std::move(made));
        return tensor;
    }

    /// Writes the first inputs in place, which lie in storages of their own.
    void inPlace(const std::string& name, const std::vector<core::TensorIndex>& inputs,
                 std::int64_t time = 1, std::size_t written = 1) {
        core::Op made = newOp(name, inputs, time);
        for (std::size_t i = 0; i < written; ++i) {
            made.writes.push_back({storage(inputs[i]), versions_[storage(inputs[i])]});
            made.outputs.push_back({inputs[i], false});
            ++versions_[storage(inputs[i])];
        }
        push(std::move(made));
    }

    void release(core::TensorIndex tensor) {
        graph_.events.push_back({core::Event::Kind::Release, storage(tensor)});
    }
    void final(core::TensorIndex tensor) { graph_.finalTensors.push_back(tensor); }
    void phase(core::Phase phase) { phase_ = phase; }

    core::StorageIndex storage(core::TensorIndex tensor) const {
        return graph_.tensors[tensor].storage;
    }
    std::int32_t version(core::TensorIndex tensor) const { return versions_[storage(tensor)]; }

    core::TrainingGraph build() {
        const std::string wrong = graph_.finish();
        EXPECT_EQ(wrong, "");
        return graph_;
    }
    core::TrainingGraph& raw() { return graph_; }

private:
    core::Op newOp(const std::string& name, const std::vector<core::TensorIndex>& inputs,
                   std::int64_t time) {
        core::Op made;
        made.name = name;
        made.time = core::Nanoseconds(time);
        made.phase = phase_;
        for (const core::TensorIndex tensor : inputs)
            made.inputs.push_back({tensor, version(tensor)});
        return made;
    }
    core::TensorIndex newStorage(std::int64_t bytes) {
        core::Storage made;
        made.bytes = core::Bytes(bytes);
        graph_.storages.push_back(made);
        versions_.push_back(0);
        graph_.tensors.push_back({static_cast<core::StorageIndex>(graph_.storages.size()) - 1,
                                  core::kNone, core::kNone});
        return static_cast<core::TensorIndex>(graph_.tensors.size()) - 1;
    }
    void push(core::Op made) {
        graph_.events.push_back(
            {core::Event::Kind::Compute, static_cast<core::OpIndex>(graph_.ops.size())});
        graph_.ops.push_back(std::move(made));
    }

    core::TrainingGraph graph_;
    std::vector<std::int32_t> versions_;
    core::Phase phase_ = core::Phase::Unknown;
};

/// A chain of `length` layers forward and its backward: activation i is read by its gradient op,
/// the weights' gradients are alive at the end. One unit of time an op.
inline core::TrainingGraph chain(int length, std::int64_t bytes, bool inPlaceActivations = false) {
    GraphBuilder b;
    std::vector<core::TensorIndex> weights, activations{b.constant(bytes)}, gradients;
    for (int i = 0; i < length; ++i) weights.push_back(b.constant(8));
    b.phase(core::Phase::Forward);
    for (int i = 0; i < length; ++i) {
        activations.push_back(b.one("layer", {activations.back(), weights[i]}, bytes));
        if (inPlaceActivations) b.inPlace("relu_", {activations.back()});
    }
    b.phase(core::Phase::Backward);
    auto gradient = b.one("loss_backward", {activations.back()}, bytes);
    for (int i = length - 1; i >= 0; --i) {
        const auto made =
            b.op("layer_backward", {gradient, activations[i + 1], activations[i], weights[i]},
                 {bytes, 8});
        b.release(gradient);
        b.release(activations[i + 1]);
        gradient = made[0];
        b.final(made[1]);
    }
    b.release(gradient);
    for (const auto weight : weights) b.final(weight);
    b.final(activations.front());
    return b.build();
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HIGHWATER_SANITIZED
#endif
#endif

/// Of so many random graphs; under the sanitizers, which take twenty times as long, a quarter.
constexpr unsigned share(unsigned all) {
#ifdef HIGHWATER_SANITIZED
    return all / 4;
#else
    return all;
#endif
}

/// Random graphs with views, in-place writes, several outputs, workspaces and early releases. With
/// `several`, ops also write two storages at once.
inline core::TrainingGraph randomGraph(unsigned seed, int ops, bool several = false) {
    std::mt19937 random(seed);
    auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    GraphBuilder b;
    std::vector<core::TensorIndex> alive;  // readable tensors, views among them
    std::vector<core::TensorIndex> constants;
    for (int i = 0; i < 3; ++i) constants.push_back(b.constant(1 + below(50)));
    alive = constants;
    for (int i = 0; i < ops; ++i) {
        b.phase(i < ops / 2 ? core::Phase::Forward : core::Phase::Backward);
        std::vector<core::TensorIndex> inputs;
        for (int k = 0, n = 1 + below(3); k < n; ++k)
            inputs.push_back(alive[below(static_cast<int>(alive.size()))]);
        const int kind = below(10);
        if (kind == 0) {
            alive.push_back(b.view(inputs.front(), 1));
        } else if (kind == 1) {
            const bool two = several && inputs.size() > 1 && below(2) == 0 &&
                             b.storage(inputs[0]) != b.storage(inputs[1]);
            b.inPlace("write_", inputs, 1 + below(5), two ? 2 : 1);
        } else {
            std::vector<std::int64_t> sizes;
            for (int k = 0, n = 1 + below(2); k < n; ++k) sizes.push_back(1 + below(100));
            for (const auto made :
                 b.op("make", inputs, sizes, 1 + below(9), below(3) == 0 ? below(40) : 0))
                alive.push_back(made);
        }
        if (alive.size() > 8 && below(2) == 0) {
            const auto gone = b.storage(alive[3 + below(static_cast<int>(alive.size()) - 3)]);
            if (std::none_of(constants.begin(), constants.end(),
                             [&](auto c) { return b.storage(c) == gone; })) {
                const auto root = std::find_if(alive.begin(), alive.end(),
                                               [&](auto t) { return b.storage(t) == gone; });
                b.release(*root);
                std::erase_if(alive, [&](auto t) { return b.storage(t) == gone; });
            }
        }
    }
    for (const auto tensor : alive) b.final(tensor);
    return b.build();
}

}  // namespace hw::test

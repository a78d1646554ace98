// SPDX-License-Identifier: MIT
#include "executor/replay/verification.h"

#include <gtest/gtest.h>

#include <span>

using namespace hw::core;
using namespace hw::executor;

namespace {

struct ReluStep {
    TrainingGraph graph;
    std::vector<float> input{1, 2}, output{3, 4};
    std::vector<std::byte> generator{std::byte{1}};

    ReluStep() {
        graph.storages.resize(2);
        graph.tensors = {{0, kNone, 0}, {1, kNone, 1}};
        for (Storage& storage : graph.storages) storage.bytes = Bytes(8);
        graph.layers.push_back({"block.relu", "ReLU", kNone});
        Op op;
        op.name = "aten::relu", op.inputs = {{0, 0}}, op.outputs = {{1, true}}, op.layer = 0;
        graph.ops = {op};
        graph.events = {{Event::Kind::Constant, 0}, {Event::Kind::Compute, 0}};
        graph.finalTensors = {1};
        graph.finish();
    }

    static std::span<const std::byte> bytes(const std::vector<float>& data) {
        return std::as_bytes(std::span(data));
    }
    static TensorBytes tensor(const std::vector<float>& data) {
        return {bytes(data).data(),
                4,
                ElementKind::Float,
                {static_cast<std::int64_t>(data.size())},
                {1}};
    }
    OpResults results(bool first = true) const {
        return {0, 0, first, {tensor(output)}, {{0, bytes(input)}}, {}};
    }
    FinalState end() const { return {{tensor(output)}, {{1, bytes(output)}}, {generator}}; }
    void record(Reference& reference) const {
        reference.beforeOp(0, {{0, bytes(input)}});
        reference.afterOp(results());
        reference.keep(end());
    }
};

}  // namespace

TEST(Verification, EqualRunsAreEqual) {
    ReluStep sample;
    Reference reference(sample.graph);
    sample.record(reference);
    Comparison comparison(reference);
    comparison.afterOp(sample.results());
    comparison.compare(sample.end());
    EXPECT_EQ(comparison.figures().compared, 3);  // one result, one final tensor, one generator
    EXPECT_EQ(comparison.figures().different, 0);
    EXPECT_EQ(comparison.figures().nonfinite, 0);
    EXPECT_FALSE(comparison.figures().first);
    EXPECT_TRUE(reference.notes().empty());
}

TEST(Verification, WhatAnImplementationMakesBesidesIsNotCompared) {
    ReluStep sample;
    Reference reference(sample.graph);
    sample.record(reference);
    Comparison comparison(reference);
    OpResults results = sample.results();
    results.outputs.push_back(ReluStep::tensor(sample.input));  // a mask, say
    comparison.afterOp(results);
    EXPECT_EQ(comparison.figures().compared, 1);
    EXPECT_EQ(comparison.figures().different, 0);
}

TEST(Verification, OriginsAreOpsThatDifferWithoutDifferentInputs) {
    ReluStep sample;  // op 1 doubles what op 0 makes
    sample.graph.storages.emplace_back().bytes = Bytes(8);
    sample.graph.tensors.push_back({2, kNone, 2});
    Op op;
    op.name = "aten::mul", op.inputs = {{1, 0}}, op.outputs = {{2, true}};
    sample.graph.ops.push_back(op);
    sample.graph.events.push_back({Event::Kind::Compute, 1});
    sample.graph.finish();
    const std::vector<float> twice{6, 8}, other{3, 5}, otherTwice{6, 10};
    const auto second = [&](const std::vector<float>& read, const std::vector<float>& made) {
        return OpResults{1, 1, true, {ReluStep::tensor(made)}, {{1, ReluStep::bytes(read)}}, {}};
    };
    Reference reference(sample.graph);
    sample.record(reference);
    reference.afterOp(second(sample.output, twice));

    Origins same(reference, sample.graph);
    same.afterOp(sample.results());
    same.afterOp(second(sample.output, twice));
    EXPECT_TRUE(same.ops().empty());

    Origins last(reference, sample.graph);
    last.afterOp(sample.results());
    last.afterOp(second(sample.output, otherTwice));
    EXPECT_EQ(last.ops(), (std::set<OpIndex>{1}));

    Origins first(reference, sample.graph);
    OpResults changed = sample.results();
    changed.outputs = {ReluStep::tensor(other)};
    first.afterOp(changed);
    first.afterOp(second(other, otherTwice));
    EXPECT_EQ(first.ops(), (std::set<OpIndex>{0}));
}

TEST(Verification, TheFirstDifferenceIsNamed) {
    ReluStep sample;
    Reference reference(sample.graph);
    sample.record(reference);
    Comparison comparison(reference);
    comparison.afterOp(sample.results());
    sample.output[1] = 5;
    comparison.afterOp(sample.results(/*first=*/false));
    sample.generator[0] = std::byte{2};
    comparison.compare(sample.end());
    EXPECT_EQ(comparison.figures().different, 3);
    ASSERT_TRUE(comparison.figures().first);
    EXPECT_EQ(comparison.figures().first->op, 0);
    EXPECT_EQ(comparison.figures().first->layer, "block.relu");
    EXPECT_TRUE(comparison.figures().first->recomputed);
    EXPECT_EQ(comparison.figures().first->tensor, sample.graph.ops[0].outputs[0].tensor);
    EXPECT_EQ(comparison.figures().first->storage, 1);
}

TEST(Verification, ADifferenceAtTheEndNamesItsStorage) {
    ReluStep sample;
    Reference reference(sample.graph);
    sample.record(reference);
    Comparison comparison(reference);
    sample.output[0] = 9;
    comparison.compare(sample.end());
    ASSERT_TRUE(comparison.figures().first);
    EXPECT_FALSE(comparison.figures().first->op);
    EXPECT_EQ(comparison.figures().first->tensor, sample.graph.finalTensors[0]);
    EXPECT_EQ(comparison.figures().first->storage, 1);
}

TEST(Verification, WhatIsNotFiniteIsCounted) {
    ReluStep sample;
    sample.output[0] = 1.0f / 0.0f;
    Reference reference(sample.graph);
    sample.record(reference);
    Comparison comparison(reference);
    comparison.afterOp(sample.results());
    comparison.compare(sample.end());
    EXPECT_EQ(comparison.figures().different, 0);
    EXPECT_EQ(comparison.figures().nonfinite, 2);
}

TEST(Verification, AnInputThatChangesSilentlyIsNoted) {
    ReluStep sample;
    Reference reference(sample.graph);
    reference.beforeOp(0, {{0, ReluStep::bytes(sample.input)}});
    sample.input[0] = 7;
    reference.afterOp(sample.results());
    ASSERT_EQ(reference.notes().size(), 1u);
    EXPECT_NE(reference.notes()[0].find("aten::relu"), std::string::npos);
}

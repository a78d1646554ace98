// SPDX-License-Identifier: MIT
// Ops that are never run again, as more goes into them than what ops leave in storages.
#include "core/memory/evaluate.h"
#include "core/memory/rebuild.h"
#include "tests/unit/graph_builder.h"

namespace hw::core {
namespace {

constexpr OpIndex kQuantize = 1, kDequantize = 2, kLast = 4;

/// make, quantize, dequantize, read, last: the program lets go of what dequantize made at the end.
TrainingGraph quantizing() {
    test::GraphBuilder builder;
    const auto data = builder.constant(8);
    const auto plain = builder.one("make", {data}, 400);
    const auto small = builder.one("quantize", {plain}, 100);
    const auto near = builder.one("dequantize", {small}, 400);
    const auto read = builder.one("read", {near}, 8);
    builder.one("last", {read}, 8);
    TrainingGraph graph = builder.build();
    graph.recorded = true;
    graph.storages[graph.storageOf(small)].quantized = true;
    graph.events.push_back({Event::Kind::Release, graph.storageOf(near)});
    EXPECT_EQ(graph.finish(), "");
    return graph;
}

bool mayRunAgain(const TrainingGraph& graph, OpIndex op) {
    std::vector<Action> schedule;
    for (OpIndex i = 0; i < static_cast<OpIndex>(graph.ops.size()); ++i)
        schedule.push_back(Action::compute(i));
    schedule.push_back(Action::recompute(op, {0}));
    return evaluate(graph, schedule).valid;
}

TEST(RunOnce, WhatMakesOrReadsQuantizedTensors) {
    const TrainingGraph graph = quantizing();
    EXPECT_FALSE(mayRunAgain(graph, kQuantize));
    EXPECT_FALSE(mayRunAgain(graph, kDequantize));
    EXPECT_TRUE(mayRunAgain(graph, 0));
    EXPECT_TRUE(mayRunAgain(graph, kDequantize + 1));
}

TEST(RunOnce, WhatTakesATensorWithoutPlainMemory) {
    TrainingGraph graph = quantizing();
    EXPECT_TRUE(mayRunAgain(graph, 0));
    graph.ops[0].opaque = true;
    ASSERT_EQ(graph.finish(), "");
    EXPECT_FALSE(mayRunAgain(graph, 0));
}

TEST(RunOnce, WhatComesOfItIsHeldAsLongAsTheProgramHoldsIt) {
    const TrainingGraph graph = quantizing();
    const RebuildInfo info = rebuildInfo(graph);
    const StorageIndex near = graph.storageOf(graph.ops[kDequantize].outputs.front().tensor);
    EXPECT_TRUE(info.source[near]);
    EXPECT_EQ(info.lastUse[near], kDequantize + 1);
    EXPECT_EQ(info.heldUntil[near], kLast);
}

TEST(RunOnce, WhatWritesSeveralStoragesLeavesSourcesForOthers) {
    test::GraphBuilder b;
    const auto input = b.constant(8);
    const auto first = b.one("make", {input}, 8), second = b.one("make", {input}, 8);
    b.inPlace("both_", {first, second});
    b.raw().ops.back().writes.push_back({b.storage(second), 0});
    b.raw().ops.back().outputs.push_back({second, false});
    const auto made = b.one("use", {first}, 8);
    b.final(b.one("last", {made}, 8));
    const TrainingGraph graph = b.build();
    const RebuildInfo info = rebuildInfo(graph);
    EXPECT_TRUE(info.source[graph.storageOf(first)]);
    EXPECT_FALSE(info.rematerializable[graph.storageOf(first)]);
    EXPECT_TRUE(info.rematerializable[graph.storageOf(made)]);
}

}  // namespace
}  // namespace hw::core

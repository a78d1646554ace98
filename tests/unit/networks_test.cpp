// SPDX-License-Identifier: MIT
#include "tests/graphs/networks.h"

#include <algorithm>
#include <map>

#include "core/memory/evaluate.h"
#include "tests/graphs/sharing.h"
#include "tests/unit/graph_builder.h"

namespace hw::bench {
namespace {

using namespace hw::core;

// Bytes of what the ops of a layer's forward pass make.
std::int64_t featureMaps(const TrainingGraph& graph, const std::string& layer) {
    std::int64_t bytes = 0;
    for (const Op& op : graph.ops)
        if (op.phase == Phase::Forward && graph.layers[op.layer].path == layer)
            for (const OpOutput& output : op.outputs)
                if (output.makesStorage)
                    bytes += graph.storages[graph.storageOf(output.tensor)].bytes.count();
    return bytes;
}

std::map<std::string, int> opCounts(const TrainingGraph& graph) {
    std::map<std::string, int> counts;
    for (const Op& op : graph.ops) ++counts[op.name];
    return counts;
}

TEST(ResidualNetwork, HasTheSizesOfItsDescription) {
    ResidualNetwork network;
    network.layers = 152;
    const TrainingGraph graph = generate(network);
    EXPECT_NEAR(static_cast<double>(featureMaps(graph, "stage1.1")), 411e6, 1e6);
    EXPECT_NEAR(static_cast<double>(featureMaps(graph, "stage2.1")), 206e6, 1e6);
    EXPECT_NEAR(static_cast<double>(featureMaps(graph, "stage3.1")), 103e6, 1e6);
    EXPECT_NEAR(static_cast<double>(featureMaps(graph, "stage4.1")), 51e6, 1e6);
    const auto counts = opCounts(graph);
    // The stem, three in each of 50 blocks, and a projection in each stage.
    EXPECT_EQ(counts.at("convolution"), 1 + 150 + 4);
    EXPECT_EQ(counts.at("convolution_backward"), counts.at("convolution"));
    EXPECT_EQ(counts.at("relu"), counts.at("relu_backward"));
    // The weights are those of the 152-layer network, 60 million within a few percent.
    std::int64_t parameters = 0;
    for (const Storage& storage : graph.storages)
        if (storage.category == Category::Parameter) parameters += storage.bytes.count() / 4;
    EXPECT_NEAR(static_cast<double>(parameters), 60e6, 2e6);
}

TEST(ResidualNetwork, WritesReluInPlaceOnlyWhenAsked) {
    ResidualNetwork network;
    network.layers = 152;
    const TrainingGraph usual = generate(network);
    network.inPlaceRelu = false;
    const TrainingGraph plain = generate(network);
    const auto inPlace = [](const Op& op) { return op.name == "relu" && !op.writes.empty(); };
    EXPECT_EQ(std::count_if(usual.ops.begin(), usual.ops.end(), inPlace),
              opCounts(usual).at("relu"));
    EXPECT_EQ(std::count_if(plain.ops.begin(), plain.ops.end(), inPlace), 0);
    EXPECT_EQ(featureMaps(plain, "stage1.1") - featureMaps(usual, "stage1.1"),
              32 * 56 * 56 * 4 * (256 + 64 + 64));
}

TEST(LstmNetwork, HasTheSizesOfItsDescription) {
    LstmNetwork network;
    network.steps = 5;
    const TrainingGraph graph = generate(network);
    EXPECT_EQ(featureMaps(graph, "lstm2.3"), 21 * 64 * 1024 * 4);
    const auto counts = opCounts(graph);
    EXPECT_EQ(counts.at("sigmoid"), 3 * 4 * 5);
    EXPECT_EQ(counts.at("tanh"), 2 * 4 * 5);
    EXPECT_EQ(counts.at("split_backward"), 4 * 5);
    // Weights are shared: one gradient for each, whatever the number of steps.
    EXPECT_EQ(counts.at("sgd_"), 4 * 2 + 1);
}

TEST(GeneratedNetworks, RunInCapturedOrder) {
    ResidualNetwork residual;
    residual.layers = 50;
    LstmNetwork lstm;
    lstm.steps = 8;
    for (const TrainingGraph& graph : {generate(residual), generate(lstm)}) {
        const Evaluation baseline = evaluate(graph, baselineSchedule(graph));
        EXPECT_TRUE(baseline.valid) << baseline.why;
        EXPECT_EQ(baseline.time, graph.totalTime());
        // Every parameter gets a gradient and is updated once.
        for (const Storage& storage : graph.storages) {
            if (storage.category == Category::Parameter) {
                EXPECT_EQ(storage.writers.size(), 1U);
            }
        }
    }
}

TEST(SharedMemory, CountsAsTheRulesSay) {
    test::GraphBuilder b;
    const TensorIndex input = b.constant(1000);
    b.phase(Phase::Forward);
    const TensorIndex product = b.one("convolution", {input}, 100);
    const TensorIndex positive = b.one("relu", {product}, 100);   // over the product
    const TensorIndex squashed = b.one("tanh", {positive}, 100);  // positive is needed again
    const TensorIndex other = b.one("convolution", {squashed}, 40);
    const TensorIndex both = b.one("add", {positive, squashed}, 100);  // over one of the two
    const TensorIndex last = b.one("mul", {both, other}, 60);          // no input of its size
    b.final(last);
    b.final(input);
    const SharedMemory memory = sharedMemory(b.build(), elementWise);
    EXPECT_EQ(memory.separate, Bytes(100 + 100 + 100 + 40 + 100 + 60));
    EXPECT_EQ(memory.inPlace, Bytes(100 + 100 + 40 + 60));
    // Highest while the sum runs: both operands, its result in one of them, and `other`.
    EXPECT_EQ(memory.sharing, Bytes(240));
}

TEST(SharedMemory, IsLeastWithSharingOnGeneratedNetworks) {
    ResidualNetwork network;
    network.layers = 101;
    network.inPlaceRelu = false;
    const TrainingGraph graph = generate(network);
    const SharedMemory memory = sharedMemory(graph, elementWise);
    const SharedMemory never = sharedMemory(graph, [](const Op&) { return false; });
    EXPECT_LT(memory.sharing, memory.inPlace);
    EXPECT_LT(memory.inPlace, memory.separate);
    EXPECT_EQ(never.inPlace, never.separate);
    EXPECT_EQ(never.separate, memory.separate);
    EXPECT_LE(memory.sharing, never.sharing);
}

}  // namespace
}  // namespace hw::bench

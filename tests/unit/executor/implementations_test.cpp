// SPDX-License-Identifier: MIT
#include "executor/replay/implementations.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace hw::core;
using namespace hw::executor;

namespace {

constexpr std::int64_t kBatch = 4, kSide = 16;

// Convolution, ReLU, max pooling; the gradients of the last two. Tensor i lies on storage i.
struct Network {
    Step step;

    Network() {
        tensor({kBatch, 3, kSide, kSide});             // 0: images
        tensor({8, 3, 3, 3});                          // 1: weights
        tensor({kBatch, 8, kSide, kSide});             // 2: of the convolution
        tensor({kBatch, 8, kSide, kSide});             // 3: of the ReLU
        tensor({kBatch, 8, kSide / 2, kSide / 2});     // 4: of the pooling
        tensor({kBatch, 8, kSide / 2, kSide / 2}, 8);  // 5: its indices
        tensor({kBatch, 8, kSide, kSide});             // 6: gradient of the pooling's input
        tensor({kBatch, 8, kSide, kSide});             // 7: gradient of the ReLU's input
        op("aten::convolution", R"([{"t":0},{"t":1},null,[1,1],[1,1],[1,1],false,[0,0],1])", {0, 1},
           {2});
        op("aten::relu", R"([{"t":2}])", {2}, {3});
        op("aten::max_pool2d_with_indices", R"([{"t":3},[2,2],[2,2],[0,0],[1,1],false])", {3},
           {4, 5});
        op("aten::max_pool2d_with_indices_backward",
           R"([{"t":4},{"t":3},[2,2],[2,2],[0,0],[1,1],false,{"t":5}])", {4, 3, 5}, {6});
        op("aten::threshold_backward", R"([{"t":6},{"t":3},0])", {6, 3}, {7});
        finish();
    }

    void tensor(std::vector<std::int64_t> sizes, std::int64_t width = 4) {
        const auto index = static_cast<std::int32_t>(step.graph.tensors.size());
        TensorShape shape{width == 4 ? "float32" : "int64", sizes, sizes, 0};
        std::int64_t bytes = width;
        for (std::size_t d = sizes.size(); d-- > 0;) {
            shape.strides[d] = bytes / width;
            bytes *= sizes[d];
        }
        step.graph.tensors.push_back({index, kNone, index});
        step.graph.storages.emplace_back().bytes = Bytes(bytes);
        step.shapes.push_back(shape);
        step.tensorOf[index] = index;
    }
    void op(const char* name, const std::string& arguments, const std::vector<TensorIndex>& reads,
            const std::vector<TensorIndex>& makes) {
        Op made;
        made.name = name;
        for (const TensorIndex t : reads) made.inputs.push_back({t, 0});
        for (const TensorIndex t : makes) made.outputs.push_back({t, true});
        made.time = Nanoseconds(10);
        step.graph.ops.push_back(made);
        OpRow row;
        row.name = name;
        row.args = R"({"a":)" + arguments + R"(,"k":{}})";
        step.ops.push_back(row);
    }
    void finish() {
        step.graph.finalTensors = {7};
        step.graph.events = {{Event::Kind::Constant, 0}, {Event::Kind::Constant, 1}};
        for (OpIndex i = 0; i < static_cast<OpIndex>(step.graph.ops.size()); ++i)
            step.graph.events.push_back({Event::Kind::Compute, i});
        ASSERT_EQ(step.graph.finish(), "");
    }
    Menu menu() const { return {offeredImplementations(step)}; }
};

TEST(OfferedImplementations, AreThoseThatTheStepAllows) {
    const Network network;
    const Menu menu = network.menu();
    ASSERT_NE(menu.find(0, kPerSample), nullptr);
    EXPECT_EQ(menu.find(0, kPerSample)->kind, ImplementationKind::Algorithm);
    ASSERT_NE(menu.find(0, kColumns), nullptr);
    EXPECT_EQ(menu.find(0, kOneDnn), nullptr);  // no convolution by 1 x 1
    ASSERT_NE(menu.find(1, kInPlace), nullptr);
    EXPECT_EQ(menu.find(1, kInPlace)->takes, 2);
    const Implementation* mask = menu.find(1, kMask);
    ASSERT_NE(mask, nullptr);
    EXPECT_EQ(mask->backward, 4);
    EXPECT_EQ(mask->insteadOf, 3);
    EXPECT_EQ(mask->bytes, Bytes(kBatch * 8 * kSide * kSide / 8));
    const Implementation* pooling = menu.find(2, kIndicesOnly);
    ASSERT_NE(pooling, nullptr);
    EXPECT_EQ(pooling->backward, 3);
    EXPECT_EQ(pooling->insteadOf, 3);
    EXPECT_EQ(pooling->output, 1);
    // The result of op 4 is there at the end: no place of another.
    EXPECT_EQ(menu.find(4, kInPlace), nullptr);
    EXPECT_EQ(menu.implementations.size(), 5U);
}

TEST(OfferedImplementations, LeaveOutWhatWouldNotBeTheSame) {
    Network other;
    other.step.shapes[6].strides = {8 * kSide * kSide, 1, 8 * kSide, 8};  // another order in memory
    EXPECT_EQ(other.menu().find(1, kMask), nullptr);
    Network threshold;
    threshold.step.ops[4].args = R"({"a":[{"t":6},{"t":3},0.5],"k":{}})";
    EXPECT_EQ(threshold.menu().find(1, kMask), nullptr);
    Network one;
    one.step.shapes[0].sizes[0] = 1;
    EXPECT_EQ(one.menu().find(0, kPerSample), nullptr);
    Network broken;
    for (OpRow& row : broken.step.ops) row.args = "[";
    EXPECT_TRUE(broken.menu().empty());
}

TEST(StepUnder, HasWhatTheChoiceMakesAndWhatIsNotReadAnyMore) {
    const Network network;
    const auto under = stepUnder(network.step, network.menu(),
                                 {{1, std::string(kMask)}, {2, std::string(kIndicesOnly)}});
    ASSERT_TRUE(under) << under.error().what;
    ASSERT_EQ(under->graph.storages.size(), 9U);
    EXPECT_EQ(under->graph.storages[8].bytes, Bytes(1024));
    EXPECT_EQ(under->shapes[8].dtype, "uint8");
    EXPECT_EQ(under->unread.at(4), (std::set<TensorIndex>{3}));
    EXPECT_EQ(under->unread.at(3), (std::set<TensorIndex>{3}));
    EXPECT_EQ(under->chosen.size(), 2U);
    // Nobody reads the ReLU's result after the pooling.
    EXPECT_EQ(under->graph.storages[3].readers, (ShortList<OpIndex>{2}));
}

TEST(StepUnder, RefusesWhatTheExecutorDoesNotHave) {
    const Network network;
    Menu menu = network.menu();
    Implementation fft;
    fft.op = 0, fft.name = "fft", fft.time = Nanoseconds(1), fft.workspace = Bytes(0);
    menu.implementations.push_back(fft);
    const auto unknown = stepUnder(network.step, menu, {{0, "fft"}});
    ASSERT_FALSE(unknown);
    EXPECT_EQ(unknown.error().code, ErrorCode::BadInput);
    EXPECT_NE(unknown.error().what.find("op 0 (aten::convolution) as 'fft'"), std::string::npos);
    const auto nowhere = stepUnder(network.step, menu, {{99, "fft"}});
    ASSERT_FALSE(nowhere);
    EXPECT_EQ(nowhere.error().code, ErrorCode::BadInput);
    // A mask of another size is not the executor's mask.
    for (Implementation& one : menu.implementations)
        if (one.name == kMask) one.bytes = Bytes(8);
    EXPECT_FALSE(stepUnder(network.step, menu, {{1, std::string(kMask)}}));
    EXPECT_TRUE(stepUnder(network.step, menu, {{1, std::string(kInPlace)}}));
}

TEST(KeepsBits, HoldsOfAllButOtherSums) {
    for (const auto name : {kPerSample, kInPlace, kMask, kIndicesOnly})
        EXPECT_TRUE(keepsBits(name));
    for (const auto name : {kOneDnn, kColumns}) EXPECT_FALSE(keepsBits(name));
}

}  // namespace

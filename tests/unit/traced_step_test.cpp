// SPDX-License-Identifier: MIT
// What the live runtime traces of a step, as a planner gets it.
#include "live/compile/traced_step.h"

#include <gtest/gtest.h>

#include <random>

namespace hw::live {
namespace {

using namespace core;

// A constant is read, a result is written in place and read once more; the first goes at the end.
const std::string kTrace = R"({"ops":[
{"name":"aten::relu","random":false,"inputs":[[0,0]],"writes":[],"outputs":[[1,1]],"ns":30,"workspace":8},
{"name":"aten::add_.Tensor","random":false,"inputs":[[1,0],[0,0]],"writes":[[1,0]],"outputs":[[1,0]],"ns":10,"workspace":0},
{"name":"aten::sum","random":false,"inputs":[[1,1]],"writes":[],"outputs":[[2,1]],"ns":20,"workspace":0}],
"storages":[64,64,4],
"tensors":[[0,"float32",[4,4],[4,1],0],[1,"float32",[4,4],[4,1],0],[2,"float32",[],[],0]],
"events":[["constant",0],["op",0],["op",1],["op",2],["release",1]],
"finals":[0,2],
"untouched":128}
)";

TEST(TracedStepTest, BecomesTheGraphOfTheStep) {
    const auto step = readTracedStep(kTrace);
    ASSERT_TRUE(step) << step.error().what;
    const TrainingGraph& graph = step->graph;
    EXPECT_TRUE(graph.recorded);
    ASSERT_EQ(graph.ops.size(), 3U);
    EXPECT_EQ(graph.ops[0].workspace, Bytes(8));
    EXPECT_EQ(graph.totalTime(), Nanoseconds(60));
    EXPECT_TRUE(graph.storages[0].isConstant());
    EXPECT_EQ(graph.storages[1].writers, ShortList<OpIndex>{1});
    EXPECT_FALSE(graph.storages[1].aliveAtEnd);
    EXPECT_TRUE(graph.storages[2].aliveAtEnd);
    EXPECT_EQ(step->tensors[1].sizes, "[4,4]");
    EXPECT_EQ(step->tensors[2].strides, "[]");
    EXPECT_EQ(step->untouched, Bytes(128));
}

TEST(TracedStepTest, SaysWhereOpsComeFrom) {
    std::string trace = kTrace;
    trace.replace(0, 1, R"x({"layers":["(root)","blocks.0.norm"],"parameters":[0],)x");
    const std::string relu = R"("name":"aten::relu",)";
    trace.insert(trace.find(relu), R"("layer":1,"phase":2,)");
    const auto step = readTracedStep(trace);
    ASSERT_TRUE(step) << step.error().what;
    const TrainingGraph& graph = step->graph;
    EXPECT_EQ(graph.storages[0].category, Category::Parameter);
    EXPECT_EQ(graph.ops[0].phase, Phase::Backward);
    EXPECT_EQ(graph.ops[1].layer, kNone);
    std::vector<std::string> paths;
    for (LayerIndex at = graph.ops[0].layer; at != kNone; at = graph.layers[at].parent)
        paths.push_back(graph.layers[at].path);
    const std::vector<std::string> expected{"blocks.0.norm", "blocks.0", "blocks", "(root)"};
    EXPECT_EQ(paths, expected);
    trace.replace(trace.find("\"layer\":1"), 9, "\"layer\":7");
    EXPECT_FALSE(readTracedStep(trace));
}

TEST(TracedStepTest, OneThatDoesNotAddUpIsRefused) {
    const auto refused = [](const std::string& from, const std::string& to) {
        std::string trace = kTrace;
        const std::size_t at = trace.find(from);
        EXPECT_NE(at, std::string::npos) << from;
        const auto step = readTracedStep(trace.replace(at, from.size(), to));
        return !step && step.error().code == ErrorCode::BadInput;
    };
    EXPECT_TRUE(
        refused("[[1,1]],\"writes\":[],\"outputs\":[[2", "[[9,1]],\"writes\":[],\"outputs\":[[2"));
    EXPECT_TRUE(refused("\"writes\":[[1,0]]", "\"writes\":[[1,3]]"));
    EXPECT_TRUE(refused("[\"op\",1]", "[\"op\",7]"));
    EXPECT_TRUE(refused("[\"release\",1]", "[\"release\",-4]"));
    EXPECT_TRUE(refused("\"finals\":[0,2]", "\"finals\":[0,12]"));
    EXPECT_TRUE(refused("\"ns\":30", "\"ns\":\"soon\""));
    EXPECT_TRUE(refused("\"untouched\":128", "\"other\":1"));
}

TEST(TracedStepTest, DamageIsRefusedOrHarmless) {
    for (std::size_t length = 0; length < kTrace.size() - 2; ++length)
        EXPECT_FALSE(readTracedStep(kTrace.substr(0, length))) << length;
    std::mt19937 random(1);
    for (int i = 0; i < 3000; ++i) {
        std::string trace = kTrace;
        for (int changes = 1 + static_cast<int>(random() % 3); changes > 0; --changes)
            trace[random() % trace.size()] = "0123456789-[],\"x"[random() % 16];
        if (const auto step = readTracedStep(trace)) {
            EXPECT_EQ(step->tensors.size(), step->graph.tensors.size());
        }
    }
}

TEST(TracedRegionTest, SaysWhereItIsCutAndWhatIsFused) {
    std::string trace = kTrace;
    for (const char* fusible : {"true", "false", "true"}) {
        const auto at = trace.find("\"ns\":", trace.rfind("\"fusible\"") == std::string::npos
                                                  ? 0
                                                  : trace.rfind("\"fusible\"") + 30);
        trace.insert(at, std::string("\"fusible\":") + fusible + ",");
    }
    trace.insert(1, R"("backward":2,"kept":[1],"most_kept":null,)");
    auto region = readTracedRegion(trace);
    ASSERT_TRUE(region) << region.error().what;
    EXPECT_EQ(region->backward, 2);
    EXPECT_EQ(region->kept, std::vector<StorageIndex>{1});
    EXPECT_EQ(region->fusible, (std::vector<bool>{true, false, true}));
    EXPECT_FALSE(region->mostKept);
    EXPECT_FALSE(region->step.graph.recorded);
    EXPECT_EQ(region->step.untouched, Bytes(128));
    const auto changed = [&](const std::string& from, const std::string& to) {
        std::string text = trace;
        return readTracedRegion(text.replace(text.find(from), from.size(), to));
    };
    EXPECT_EQ(changed("\"most_kept\":null", "\"most_kept\":64")->mostKept, Bytes(64));
    EXPECT_EQ(changed("\"backward\":2", "\"backward\":null")->backward, kNone);
    EXPECT_FALSE(changed("\"kept\":[1]", "\"kept\":[9]"));
    EXPECT_FALSE(changed("\"fusible\":false,", ""));
}

}  // namespace
}  // namespace hw::live

// SPDX-License-Identifier: MIT
#include "core/session/origins.h"

#include "core/session/database.h"
#include "core/session/session_writer.h"
#include "tests/unit/step_rows.h"
#include "tests/unit/test_data.h"

namespace hw::core {
namespace {

class Origins : public ::testing::Test {
protected:
    void SetUp() override {
        ASSERT_TRUE(test::writeSmallStep(session_, 0));
        for (const SourceFrameRow& row : {SourceFrameRow{0, "/a/train.py", "main", 3, false},
                                          SourceFrameRow{1, "/a/model.py", "forward", 8, false},
                                          SourceFrameRow{2, "/torch/nn.py", "relu", 99, true}})
            ASSERT_TRUE(session_.insert(row));
        for (const StackRow& row : {StackRow{0, {}, 0}, StackRow{1, 0, 1}, StackRow{2, 1, 2}})
            ASSERT_TRUE(session_.insert(row));
        auto graph = loadGraph(session_, 0);
        ASSERT_TRUE(graph) << graph.error().what;
        graph_ = std::move(*graph);
    }
    /// After it, no more rows.
    void load() {
        auto stacks = CallStacks::load(session_);
        ASSERT_TRUE(stacks) << stacks.error().what;
        stacks_ = std::move(*stacks);
        baseline_ = evaluate(graph_, baselineSchedule(graph_));
        atPeak_ = originsAtPeak(graph_, baseline_, stacks_);
    }
    Bytes atPeak() const {
        Bytes total;
        for (const Origin& origin : atPeak_) total += origin.bytes;
        return total;
    }

    SessionWriter session_ = SessionWriter::inMemory();
    TrainingGraph graph_;
    CallStacks stacks_;
    Evaluation baseline_;
    std::vector<Origin> atPeak_;
};

TEST_F(Origins, AtThePeakTheySumToThePeak) {
    load();
    EXPECT_EQ(atPeak(), baseline_.peak);
}

TEST_F(Origins, GroupsByEveryKeyHoldTheSameBytes) {
    load();
    for (const OriginKey key :
         {OriginKey::Line, OriginKey::File, OriginKey::Function, OriginKey::Layer}) {
        Bytes total;
        for (const OriginGroup& group : originsBy(key, graph_, stacks_, atPeak_, {}))
            total += group.peak;
        EXPECT_EQ(total, baseline_.peak);
    }
}

TEST_F(Origins, ATreeHidesTheFrameworksFramesUnlessAsked) {
    const std::vector<Origin> one{{Bytes(10), kNone, 0, kNone, 2}};
    load();
    const OriginNode program = originTree(OriginTree::Program, graph_, stacks_, one);
    ASSERT_EQ(program.children.size(), 1u);
    EXPECT_EQ(program.children[0].name, "train.py:3 main");
    ASSERT_EQ(program.children[0].children.size(), 1u);
    EXPECT_EQ(program.children[0].children[0].name, "model.py:8 forward");
    ASSERT_EQ(program.children[0].children[0].children.size(), 1u);
    EXPECT_EQ(program.children[0].children[0].children[0].frame, nullptr) << "the op itself";
    const OriginNode all = originTree(OriginTree::Stack, graph_, stacks_, one);
    EXPECT_EQ(all.children[0].children[0].children[0].name, "nn.py:99 relu");
    EXPECT_EQ(all.bytes, Bytes(10));
}

TEST_F(Origins, BytesWithoutAStackStandUnderWhatIsKnownOfThem) {
    load();
    for (const OriginGroup& group : originsBy(OriginKey::Line, graph_, stacks_, atPeak_, {}))
        EXPECT_TRUE(group.name.starts_with("(") || group.name == "aten::make")
            << group.name << ": no op of the step has a stack";
}

// A trace of ops tells what asked for memory even where it tells no line.
TEST(OriginGroups, StoragesWithoutALineGoByTheirOp) {
    TrainingGraph graph;
    graph.ops.resize(1);
    graph.ops[0].name = "aten::mm";
    graph.storages.resize(1);
    graph.storages[0].bytes = Bytes(10);
    const std::vector<Origin> one{{Bytes(10), 0, 0, kNone, CallStacks::kNone}};
    const CallStacks none;
    const auto named = [&](OriginKey key) { return originsBy(key, graph, none, one, {})[0].name; };
    EXPECT_EQ(named(OriginKey::Line), "aten::mm");
    EXPECT_EQ(named(OriginKey::Layer), "(not known)") << "an op is no layer";
    const OriginNode tree = originTree(OriginTree::Program, graph, none, one);
    ASSERT_EQ(tree.children.size(), 1U);
    EXPECT_EQ(tree.children[0].name, "aten::mm");
    EXPECT_TRUE(tree.children[0].children.empty()) << "named once";
}

TEST(OriginTree, BesideAnotherPartsOfOneNameAreOne) {
    const auto node = [](const char* name, int bytes, std::vector<OriginNode> parts = {}) {
        OriginNode made;
        made.name = name, made.bytes = Bytes(bytes), made.children = std::move(parts);
        return made;
    };
    // "a" has 5 bytes of its own here; "gone" is only here, "new" only there.
    const OriginNode here =
        node("", 100, {node("a", 60, {node("x", 30), node("y", 25)}), node("gone", 40)});
    const OriginNode there =
        node("", 150, {node("new", 70), node("a", 80, {node("y", 60), node("x", 20)})});
    const OriginNode both = besideOther(here, there);
    EXPECT_EQ(both.bytes, Bytes(100));
    EXPECT_EQ(both.other, Bytes(150));
    ASSERT_EQ(both.children.size(), 3U);
    const OriginNode &a = both.children[0], &fresh = both.children[1], &gone = both.children[2];
    EXPECT_EQ(a.name, "a");
    EXPECT_EQ(a.either, Bytes(5 + 30 + 60)) << "part by part the larger one";
    EXPECT_EQ(a.children[0].name, "y") << "the largest of either first";
    EXPECT_EQ(a.children[0].bytes, Bytes(25));
    EXPECT_EQ(a.children[0].other, Bytes(60));
    EXPECT_EQ(fresh.name, "new");
    EXPECT_EQ(fresh.bytes, Bytes(0));
    EXPECT_EQ(fresh.largest, kNone);
    EXPECT_EQ(gone.other, Bytes(0));
    EXPECT_EQ(both.either, a.either + Bytes(70) + Bytes(40));
}

// A line is one of both sessions by its file and its text, not by where its row is.
TEST(OriginTree, BesideAnotherFramesAreOneByWhatTheySay) {
    const SourceFrameRow here{0, "/a/model.py", "forward", 8, false},
        there{7, "/a/model.py", "forward", 8, false},
        elsewhere{8, "/b/model.py", "forward", 8, false};
    const auto tree = [](std::vector<const SourceFrameRow*> frames) {
        OriginNode root;
        for (const SourceFrameRow* frame : frames) {
            OriginNode child;
            child.name = frameText(*frame), child.frame = frame, child.bytes = Bytes(10);
            root.bytes += child.bytes;
            root.children.push_back(child);
        }
        return root;
    };
    const OriginNode both = besideOther(tree({&here}), tree({&there, &elsewhere}));
    ASSERT_EQ(both.children.size(), 2U);
    EXPECT_EQ(both.children[0].other, Bytes(10));
    EXPECT_EQ(both.children[0].frame, &here);
    EXPECT_EQ(both.children[1].frame, &elsewhere);
}

TEST(CallStacks, ASessionWithoutTheTablesHasNone) {
    test::TemporaryFolder folder;
    {
        auto made = SessionWriter::create(folder / "old.hws");
        ASSERT_TRUE(made);
        ASSERT_TRUE(test::writeSmallStep(*made, 0));
    }
    {
        Database old(folder / "old.hws", 2);
        for (const char* table : {"op_stacks", "storage_stacks", "stacks", "source_frames"})
            old.execute((std::string("DROP TABLE ") + table).c_str());
    }
    const auto session = Session::open(folder / "old.hws");
    ASSERT_TRUE(session) << session.error().what;
    const auto stacks = CallStacks::load(*session);
    ASSERT_TRUE(stacks) << stacks.error().what;
    EXPECT_TRUE(stacks->empty());
    EXPECT_EQ(stacks->line(stacks->ofOp(0)), nullptr);
}

}  // namespace
}  // namespace hw::core

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
        EXPECT_EQ(group.name.front(), '(') << group.name << ": no op of the step has a stack";
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

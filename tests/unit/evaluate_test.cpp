// SPDX-License-Identifier: MIT
// The judge, rule by rule (docs/judge.md numbers them).
#include "core/memory/evaluate.h"

#include "core/plan/codec.h"
#include "tests/unit/graph_builder.h"

namespace hw::core {
namespace {

using test::GraphBuilder;

Schedule computeAll(const TrainingGraph& graph) {
    Schedule schedule;
    for (OpIndex op = 0; op < static_cast<OpIndex>(graph.ops.size()); ++op)
        schedule.push_back(Action::compute(op));
    return schedule;
}

TEST(Evaluate, CountsConstantsOutputsAndWorkspaceWhileAnOpRuns) {
    GraphBuilder b;
    const auto input = b.constant(10);
    const auto a = b.one("a", {input}, 100, 3, 7);
    b.final(a);
    const TrainingGraph graph = b.build();
    const Evaluation result = evaluate(graph, baselineSchedule(graph));
    ASSERT_TRUE(result.valid) << result.why;
    EXPECT_EQ(result.peak, Bytes(117));
    EXPECT_EQ(result.time, Nanoseconds(3));
}

TEST(Evaluate, BaselineFreesAtTheLastRelease) {
    GraphBuilder b;
    const auto x = b.constant(1);
    const auto a = b.one("a", {x}, 100);
    const auto c = b.one("c", {a}, 10);
    b.release(a);
    const auto d = b.one("d", {c}, 50);
    b.release(c), b.final(d), b.release(x);
    const TrainingGraph graph = b.build();
    std::vector<MemoryPoint> curve;
    const Evaluation result = evaluate(graph, baselineSchedule(graph), curve);
    ASSERT_TRUE(result.valid) << result.why;
    EXPECT_EQ(result.peak, Bytes(111));
    EXPECT_EQ(curve.back().after, Bytes(50));
}

TEST(Evaluate, RefusesAnotherOrderOfStorageMakingOps) {
    GraphBuilder b;
    const auto x = b.constant(1);
    b.final(b.one("a", {x}, 1)), b.final(b.one("b", {x}, 1));
    const TrainingGraph graph = b.build();
    const Evaluation result = evaluate(graph, {Action::compute(1), Action::compute(0)});
    EXPECT_FALSE(result.valid);
    EXPECT_EQ(result.action, 0u);
    EXPECT_NE(result.why.find("out of order"), std::string::npos);
}

TEST(Evaluate, ViewsMayBeComputedLate) {
    GraphBuilder b;
    const auto x = b.constant(1);
    const auto a = b.one("a", {x}, 10);
    const auto v = b.view(a);
    const auto c = b.one("c", {x}, 10);
    b.final(b.one("d", {v, c}, 1));
    const TrainingGraph graph = b.build();
    Schedule late = computeAll(graph);
    std::swap(late[1], late[2]);
    const Evaluation result = evaluate(graph, late);
    EXPECT_TRUE(result.valid) << result.why;
    std::swap(late[2], late[3]);
    EXPECT_FALSE(evaluate(graph, late).valid) << "not after its reader";
}

TEST(Evaluate, EvictionUndefinesViews) {
    GraphBuilder b;
    const auto x = b.constant(1);
    const auto a = b.one("a", {x}, 10);
    const auto v = b.view(a);
    b.final(b.one("c", {v}, 1));
    b.release(a);
    const TrainingGraph graph = b.build();
    const StorageIndex s = graph.storageOf(a);
    Schedule schedule{Action::compute(0),        Action::compute(1), Action::free(s),
                      Action::recompute(0, {0}), Action::compute(2), Action::free(s)};
    EXPECT_FALSE(evaluate(graph, schedule).valid);
    schedule.insert(schedule.begin() + 4, Action::recompute(1, {0}));
    const Evaluation result = evaluate(graph, schedule);
    EXPECT_TRUE(result.valid) << result.why;
    EXPECT_EQ(result.recomputedOps, 2);
}

TEST(Evaluate, RecomputedDuplicatesAreChargedWhileTheOpRuns) {
    GraphBuilder b;
    const auto x = b.constant(0);
    const auto made = b.op("two", {x}, {100, 30});
    b.final(b.one("c", {made[0], made[1]}, 1));
    b.release(made[0]), b.release(made[1]);
    const TrainingGraph graph = b.build();
    const StorageIndex first = graph.storageOf(made[0]), second = graph.storageOf(made[1]);
    std::vector<MemoryPoint> curve;
    const Evaluation result =
        evaluate(graph,
                 {Action::compute(0), Action::free(second), Action::recompute(0, {1}),
                  Action::compute(1), Action::free(first), Action::free(second)},
                 curve);
    ASSERT_TRUE(result.valid) << result.why;
    EXPECT_EQ(curve[2].during, Bytes(230));  // resident 100 + both outputs again
    EXPECT_EQ(curve[2].after, Bytes(130));
}

TEST(Evaluate, InPlaceWritesMakeVersionsAndTakeNoBytes) {
    GraphBuilder b;
    const auto x = b.constant(1);
    const auto a = b.one("a", {x}, 10);
    b.inPlace("relu_", {a});
    b.final(b.one("c", {a}, 5));
    b.release(a);
    const TrainingGraph graph = b.build();
    const StorageIndex s = graph.storageOf(a);
    EXPECT_EQ(evaluate(graph, baselineSchedule(graph)).peak, Bytes(16));
    // Rebuilt by its creator alone it holds version 0, and the reader wants version 1.
    Schedule schedule{Action::compute(0),        Action::compute(1), Action::free(s),
                      Action::recompute(0, {0}), Action::compute(2), Action::free(s)};
    const Evaluation stale = evaluate(graph, schedule);
    EXPECT_FALSE(stale.valid);
    EXPECT_EQ(stale.action, 4u);
    schedule.insert(schedule.begin() + 4, Action::recompute(1, {}));
    const Evaluation result = evaluate(graph, schedule);
    EXPECT_TRUE(result.valid) << result.why;
}

TEST(Evaluate, WritersOfConstantsAreNeverRunAgain) {
    GraphBuilder b;
    const auto weight = b.constant(8);
    b.inPlace("add_", {weight});
    b.final(weight);
    const TrainingGraph graph = b.build();
    const Evaluation result = evaluate(graph, {Action::compute(0), Action::recompute(0, {})});
    EXPECT_FALSE(result.valid);
    EXPECT_EQ(result.action, 1u);
}

TEST(Evaluate, FinalTensorsMustBeThereWithTheirViews) {
    GraphBuilder b;
    const auto x = b.constant(1);
    const auto a = b.one("a", {x}, 10);
    const auto v = b.view(a);
    b.final(v);
    const TrainingGraph graph = b.build();
    EXPECT_TRUE(evaluate(graph, computeAll(graph)).valid);
    Schedule lost = computeAll(graph);
    lost.push_back(Action::free(graph.storageOf(a)));
    lost.push_back(Action::recompute(0, {0}));
    const Evaluation result = evaluate(graph, lost);
    EXPECT_FALSE(result.valid) << "the view was not made again";
}

TEST(Evaluate, ConstantsArriveAtTheirPlace) {
    GraphBuilder b;
    const auto x = b.constant(1);
    const auto a = b.one("a", {x}, 100);
    b.release(a);
    const auto late = b.constant(50);
    b.final(b.one("c", {late}, 10)), b.final(late), b.final(x);
    const TrainingGraph graph = b.build();
    EXPECT_EQ(evaluate(graph, baselineSchedule(graph)).peak, Bytes(151))
        << "it arrives before the free";
}

TEST(Evaluate, EncodedFormsReplaceStorages) {
    GraphBuilder b;
    const auto x = b.constant(0);
    const auto a = b.one("a", {x}, 64);
    const auto c = b.one("c", {x}, 100);
    b.final(b.one("d", {a}, 1)), b.final(c);
    b.release(a);
    const TrainingGraph graph = b.build();
    const StorageIndex s = graph.storageOf(a);
    std::vector<MemoryPoint> curve;
    const Evaluation result =
        evaluate(graph,
                 {Action::compute(0), Action::encode(s, "bits", Bytes(2)), Action::compute(1),
                  Action::decode(s), Action::compute(2), Action::free(s)},
                 curve);
    ASSERT_TRUE(result.valid) << result.why;
    EXPECT_EQ(curve[1].during, Bytes(66));
    EXPECT_EQ(curve[2].during, Bytes(102));
    EXPECT_EQ(curve[3].during, Bytes(166));
    EXPECT_EQ(result.time, graph.totalTime() + codecTime("bits", Bytes(64), Bytes(2)) * 2);
}

// Both forms of a storage are there when it is recomputed while it is encoded.
TEST(Evaluate, NoCodecWhileBothFormsAreThere) {
    GraphBuilder b;
    const auto x = b.constant(0);
    const auto a = b.one("a", {x}, 64);
    b.final(b.one("d", {a}, 1));
    b.release(a);
    const TrainingGraph graph = b.build();
    const StorageIndex s = graph.storageOf(a);
    const Schedule both{Action::compute(0), Action::encode(s, "bits", Bytes(2)),
                        Action::recompute(0, {0})};
    Schedule freed = both;
    for (const Action& action : {Action::free(s), Action::compute(1), Action::free(s)})
        freed.push_back(action);
    EXPECT_TRUE(evaluate(graph, freed).valid) << "the encoded form goes first";
    for (const Action& action : {Action::encode(s, "bits", Bytes(2)), Action::decode(s)}) {
        Schedule schedule = both;
        schedule.push_back(action);
        const Evaluation result = evaluate(graph, schedule);
        EXPECT_FALSE(result.valid);
        EXPECT_EQ(result.action, 3U) << result.why;
    }
}

TEST(Evaluate, CodecsTakeTheTimeOfTheirElements) {
    EXPECT_EQ(codecTime(kMaskCodec, Bytes(4096), Bytes(8 + 128)), Nanoseconds(1632));
    EXPECT_EQ(codecTime(kSignCodec, Bytes(4096), Bytes(128)),
              codecTime(kSignCodec, Bytes(8192), Bytes(128)))
        << "as many elements, of twice the width";
    EXPECT_EQ(codecTime(kIndexCodec, Bytes(4096), Bytes(2048)), Nanoseconds(512));
    EXPECT_GT(codecTime("unknown", Bytes(4096), Bytes(2048)), Nanoseconds(0));
}

TEST(Evaluate, NamesWhatIsWrongWithNonsense) {
    const TrainingGraph graph = test::chain(3, 10);
    for (const Schedule& schedule : {Schedule{Action::compute(99)}, Schedule{Action::free(-1)},
                                     Schedule{Action::recompute(0, {0})},
                                     Schedule{Action::compute(0), Action::recompute(0, {7})},
                                     Schedule{}, Schedule{Action::free(0), Action::free(0)},
                                     Schedule{Action::compute(0), Action::compute(0)}}) {
        const Evaluation result = evaluate(graph, schedule);
        EXPECT_FALSE(result.valid);
        EXPECT_FALSE(result.why.empty());
    }
}

TEST(Evaluate, SumsOfTimesStayFarFromTheLargestNumber) {
    TrainingGraph graph = test::chain(3, 10);
    for (Op& op : graph.ops) op.time = Nanoseconds(std::int64_t{1} << 50);
    EXPECT_EQ(graph.finish(), "");
    for (Op& op : graph.ops) op.time = Nanoseconds(INT64_MAX / 2);
    EXPECT_EQ(graph.finish(), "the ops take longer than any step");
}

TEST(Evaluate, BaselineOfRandomGraphsIsValidAndAboveTheFloor) {
    for (unsigned seed = 0; seed < 200; ++seed) {
        const TrainingGraph graph = test::randomGraph(seed, 60);
        const Evaluation result = evaluate(graph, baselineSchedule(graph));
        ASSERT_TRUE(result.valid) << "seed " << seed << ": " << result.why;
        EXPECT_EQ(result.time, graph.totalTime());
        EXPECT_GE(result.peak, graph.floorBytes()) << "seed " << seed;
        EXPECT_GE(result.peak, graph.bottleneckBytes());
    }
}

}  // namespace
}  // namespace hw::core

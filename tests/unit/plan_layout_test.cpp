// SPDX-License-Identifier: MIT
#include "core/memory/plan_layout.h"

#include <gtest/gtest.h>

#include "core/memory/evaluate.h"
#include "core/memory/rebuild.h"
#include "core/memory/schedule_builder.h"
#include "planners/fit_arena.h"
#include "tests/unit/graph_builder.h"

namespace hw::core {
namespace {

PackOptions quick() {
    PackOptions options;
    options.workLimit = 200'000;
    return options;
}

// Computes everything, dropping storages at random on the way.
Schedule randomSchedule(const TrainingGraph& graph, unsigned seed) {
    const RebuildInfo info = rebuildInfo(graph);
    ScheduleBuilder builder(graph, info);
    std::mt19937 random(seed);
    while (!builder.done()) {
        builder.computeNext();
        for (StorageIndex s = 0; s < static_cast<StorageIndex>(graph.storages.size()); ++s)
            if (builder.resident(s) && info.rematerializable[s] && random() % 4 == 0)
                builder.drop(s);
    }
    return builder.finish();
}

// A constant, an op with two results and workspace, a reader of each.
struct PlannedStep {
    TrainingGraph graph;
    StorageIndex kept, dropped;

    PlannedStep() {
        test::GraphBuilder b;
        const auto x = b.constant(64);
        const auto made = b.op("make", {x}, {128, 256}, 1, 32);
        b.final(b.one("use", {made[0], made[1]}, 64));
        b.final(x);
        kept = b.storage(made[0]);
        dropped = b.storage(made[1]);
        graph = b.build();
    }
};

}  // namespace

TEST(PlanLayout, TheHighestSumOfBlocksIsTheJudgesPeak) {
    int recomputations = 0, valid = 0;
    for (unsigned seed = 0; seed < 60; ++seed) {
        const TrainingGraph graph = test::randomGraph(seed, 60);
        for (const Schedule& schedule : {baselineSchedule(graph), randomSchedule(graph, seed)}) {
            const Evaluation judged = evaluate(graph, schedule);
            if (!judged.valid) continue;  // what was dropped cannot always be rebuilt
            ++valid;
            const ScheduleBlocks made = scheduleBlocks(graph, schedule);
            EXPECT_EQ(highestLoad(made.blocks), judged.peak) << seed;
            recomputations += static_cast<int>(judged.recomputedOps);
            const AddressLayout layout = layOut(graph, schedule, quick());
            const Status verified = verifyLayout(layout, graph, schedule, kArenaAlignment);
            EXPECT_TRUE(verified) << (verified ? "" : verified.error().what);
            EXPECT_GE(layout.arena, judged.peak);
        }
    }
    EXPECT_GT(recomputations, 100);
    EXPECT_GT(valid, 110);
}

TEST(PlanLayout, DuplicatesAndWorkspaceLiveForTheOpOnly) {
    const PlannedStep sample;
    const Schedule schedule{Action::compute(0), Action::free(sample.kept),
                            Action::recompute(0, {0}), Action::compute(1)};
    ASSERT_TRUE(evaluate(sample.graph, schedule).valid);
    const ScheduleBlocks made = scheduleBlocks(sample.graph, schedule);
    ASSERT_EQ(made.allocations(0), 3u);  // two results, then the workspace
    ASSERT_EQ(made.allocations(2), 3u);
    EXPECT_EQ(made.allocations(1), 0u);
    const Block* again = &made.blocks[made.firstOfAction[2]];
    EXPECT_EQ(again[0].size, Bytes(128));
    EXPECT_GT(again[0].end, again[1].end);  // kept beyond the op
    EXPECT_EQ(again[1].size, Bytes(256));
    EXPECT_EQ(again[1].end - again[1].begin, 1);  // resident already
    EXPECT_EQ(again[2].size, Bytes(32));
    EXPECT_EQ(again[2].end - again[2].begin, 1);
    EXPECT_EQ(blockNames(made)[made.firstOfAction[2] + 1], "a2.1");
    EXPECT_EQ(blockNames(made)[made.constants.at(0)], "c0");
}

TEST(PlanLayout, BothFormsOfAnEncodedStorageLiveWhileItsCodecRuns) {
    const PlannedStep sample;
    Schedule schedule{Action::compute(0), Action::encode(sample.dropped, "mask", Bytes(8)),
                      Action::decode(sample.dropped), Action::compute(1)};
    const Evaluation judged = evaluate(sample.graph, schedule);
    ASSERT_TRUE(judged.valid) << judged.why;
    const ScheduleBlocks made = scheduleBlocks(sample.graph, schedule);
    EXPECT_EQ(highestLoad(made.blocks), judged.peak);
    ASSERT_EQ(made.allocations(1), 1u);
    EXPECT_EQ(made.blocks[made.firstOfAction[1]].size, Bytes(8));
    EXPECT_EQ(made.blocks[made.firstOfAction[2]].size, Bytes(256));
    EXPECT_TRUE(made.blocks[made.firstOfAction[1]].livesWith(made.blocks[made.firstOfAction[2]]));
    EXPECT_TRUE(verifyLayout(layOut(sample.graph, schedule, quick()), sample.graph, schedule,
                             kArenaAlignment));
}

TEST(PlanLayout, ARecordedSignatureSaysWhatAnOpAllocates) {
    const PlannedStep sample;
    Signatures signatures(2);
    // The second result first, then scratch that is gone before the first result is made.
    signatures[0] = {{{Bytes(256), 1, 0, std::nullopt, nullptr},
                      {Bytes(32), std::nullopt, 1, 2, nullptr},
                      {Bytes(128), 0, 3, std::nullopt, nullptr}},
                     4};
    signatures[1] = {{{Bytes(64), 0, 0, std::nullopt, nullptr}}, 1};
    const Schedule schedule{Action::compute(0), Action::free(sample.kept),
                            Action::recompute(0, {0}), Action::compute(1)};
    const ScheduleBlocks made = scheduleBlocks(sample.graph, schedule, {.signatures = &signatures});
    ASSERT_EQ(made.allocations(2), 3u);
    const Block* again = &made.blocks[made.firstOfAction[2]];
    EXPECT_FALSE(again[1].livesWith(again[2])) << "the scratch is gone";
    EXPECT_TRUE(again[0].livesWith(again[2]));
    EXPECT_LT(again[0].end, again[2].end) << "a duplicate dies with the op";
    const std::size_t last = made.firstOfAction[3];
    EXPECT_TRUE(again[2].livesWith(made.blocks[last]));
    EXPECT_FALSE(again[0].livesWith(made.blocks[last]));

    const AddressLayout layout = layOut(sample.graph, schedule, quick(), &signatures);
    EXPECT_TRUE(verifyLayout(layout, sample.graph, schedule, kArenaAlignment, &signatures));
    AddressLayout shifted = layout;
    shifted.offsets[2][0] = shifted.offsets[2][2];
    const Status overlap =
        verifyLayout(shifted, sample.graph, schedule, kArenaAlignment, &signatures);
    ASSERT_FALSE(overlap);
    EXPECT_NE(overlap.error().what.find("(op 0, make)"), std::string::npos) << overlap.error().what;
}

TEST(PlanLayout, ABrokenLayoutIsRefused) {
    const PlannedStep sample;
    const Schedule schedule = baselineSchedule(sample.graph);
    const AddressLayout layout = layOut(sample.graph, schedule, quick());
    const auto check = [&](const AddressLayout& changed) {
        return verifyLayout(changed, sample.graph, schedule, kArenaAlignment);
    };
    ASSERT_TRUE(check(layout));
    AddressLayout changed = layout;
    changed.offsets[0][1] = changed.offsets[0][0];
    const Status overlap = check(changed);
    ASSERT_FALSE(overlap);
    EXPECT_EQ(overlap.error().code, ErrorCode::Verification);
    EXPECT_NE(overlap.error().what.find("a0.0"), std::string::npos) << overlap.error().what;
    changed = layout;
    changed.offsets[0][0] += Bytes(1);
    EXPECT_FALSE(check(changed));
    changed = layout;
    changed.arena = Bytes(100);
    EXPECT_FALSE(check(changed));
    changed = layout;
    changed.offsets[0].pop_back();
    EXPECT_EQ(check(changed).error().code, ErrorCode::BadInput);
    changed = layout;
    changed.constants.clear();
    EXPECT_FALSE(check(changed));
}

TEST(PlanLayout, InPlaceMergesOnlyWhatDiesWithAnElementWiseOp) {
    test::GraphBuilder b;
    const auto x = b.constant(100);
    const auto a = b.one("aten::mm", {x}, 100);
    const auto r = b.one("aten::relu", {a}, 100);  // a dies: merged
    b.release(a);
    const auto s = b.one("aten::sigmoid", {r}, 100);  // r lives on
    const auto m = b.one("aten::mm", {r}, 100);       // not element-wise
    b.release(r);
    const auto t = b.one("aten::tanh", {x}, 100);             // a constant stays
    const auto sum = b.one("aten::add.Tensor", {s, m}, 100);  // takes the place of s
    b.release(s);
    b.release(m);
    b.final(sum);
    b.final(t);
    b.final(x);
    const TrainingGraph graph = b.build();
    const Schedule schedule = baselineSchedule(graph);
    const ScheduleBlocks plain = scheduleBlocks(graph, schedule);
    const ScheduleBlocks merged = scheduleBlocks(graph, schedule, {.inPlace = true});
    EXPECT_EQ(plain.merged, 0u);
    EXPECT_EQ(merged.merged, 2u);
    const Packing packing = packBlocks(merged.blocks, quick());
    EXPECT_LT(highestLoad(merged.blocks), highestLoad(plain.blocks));
    const std::size_t input = merged.firstOfAction[0], output = merged.firstOfAction[1];
    EXPECT_EQ(merged.placedIn[output], input);
    EXPECT_GE(packing.arena, highestLoad(merged.blocks));
}

TEST(PlanLayout, FragmentationCountsTheHoleAtThePeak) {
    const std::vector<Block> blocks{{0, 4, Bytes(64)}, {0, 2, Bytes(64)}, {2, 4, Bytes(64)}};
    Packing packing;
    packing.arena = Bytes(256);
    packing.offsets = {Bytes(0), Bytes(192), Bytes(64)};
    const Fragmentation figures = fragmentation(blocks, packing);
    EXPECT_EQ(figures.livePeak, Bytes(128));
    EXPECT_EQ(figures.largestHoleAtPeak, Bytes(128));  // at the first peak: [64, 192)
    EXPECT_DOUBLE_EQ(figures.overhead, 1.0);
}

TEST(FitArena, TheArenaKeepsTheBudget) {
    const TrainingGraph graph = test::chain(24, 1000);
    const Bytes peak = evaluate(graph, baselineSchedule(graph)).peak;
    int fitted = 0;
    for (const double share : {0.9, 0.7, 0.5, 0.4}) {
        planners::PlanRequest request;
        request.budget =
            Bytes(static_cast<std::int64_t>(static_cast<double>(peak.count()) * share));
        const auto outcome = planners::planWithinArena("dtr:eqclass", graph, request, quick());
        ASSERT_TRUE(outcome) << outcome.error().what;
        if (outcome->status != planners::PlanStatus::Ok) {
            EXPECT_FALSE(outcome->reason.empty());
            continue;
        }
        ++fitted;
        ASSERT_TRUE(outcome->plan && outcome->plan->layout);
        EXPECT_LE(outcome->plan->layout->arena, request.budget);
        EXPECT_EQ(outcome->plan->budget, request.budget);
        EXPECT_TRUE(
            verifyLayout(*outcome->plan->layout, graph, outcome->plan->schedule, kArenaAlignment));
    }
    EXPECT_GE(fitted, 2);
}

TEST(FitArena, SaysWhyNothingFits) {
    const TrainingGraph graph = test::chain(8, 1000);
    planners::PlanRequest request;
    request.budget = Bytes(10);
    const auto outcome = planners::planWithinArena("none", graph, request, quick());
    ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->status, planners::PlanStatus::Infeasible);
    EXPECT_FALSE(outcome->plan);
    EXPECT_FALSE(outcome->reason.empty());
}

}  // namespace hw::core

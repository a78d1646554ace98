// SPDX-License-Identifier: MIT
// What a compiled region keeps for its backward.
#include "planners/partition/partition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>

#include "core/memory/evaluate.h"
#include "planners/partition/partition_judge.h"
#include "tests/unit/graph_builder.h"

namespace hw::planners {
namespace {

using namespace core;

/// No op is fused, and the compiler keeps all that the backward reads.
JointRegion regionOf(TrainingGraph graph) {
    JointRegion region{std::move(graph), 0, {}, {}};
    while (region.graph.ops[region.backward].phase != Phase::Backward) ++region.backward;
    region.fusible.assign(region.graph.ops.size(), false);
    for (StorageIndex s = 0; s < static_cast<StorageIndex>(region.graph.storages.size()); ++s) {
        const Storage& storage = region.graph.storages[s];
        if (!storage.isConstant() && storage.creator < region.backward &&
            !storage.readers.empty() && storage.readers.back() >= region.backward)
            region.kept.push_back(s);
    }
    return region;
}

/// A forward of some ops, each of what came before, and a backward that reads them again.
JointRegion randomRegion(unsigned seed) {
    std::mt19937 random(seed);
    const auto below = [&](std::size_t n) { return random() % n; };
    test::GraphBuilder b;
    std::vector<TensorIndex> made{b.constant(0)};
    b.phase(Phase::Forward);
    for (int k = 0; k < 7; ++k)
        made.push_back(b.one("forward", {made.back(), made[below(made.size())]},
                             static_cast<std::int64_t>(5000 * (1 + below(9))),
                             static_cast<std::int64_t>(1 + below(9))));
    b.final(made.back());
    b.phase(Phase::Backward);
    TensorIndex gradient = b.one("backward", {made.back()}, 5000);
    for (std::size_t k = made.size(); k-- > 1;)
        if (below(4) != 0) gradient = b.one("backward", {gradient, made[k]}, 10000);
    b.final(gradient);
    return regionOf(b.build());
}

PartitionFigures own(const JointRegion& region) {
    return *partitionFigures(region, region.kept, Bytes(0));
}

TEST(Partition, WhatTheCompilerKeepsCountsAsItRuns) {
    const JointRegion region = regionOf(test::chain(8, 100));
    EXPECT_EQ(own(region).time, region.graph.totalTime());
    // Its activations but the last one's neighbour are read once more: what is given counts too.
    EXPECT_EQ(own(region).peak, evaluate(region.graph, baselineSchedule(region.graph)).peak -
                                    region.graph.constantPeak());
}

TEST(Partition, NothingKeptIsMadeAgainOnce) {
    const JointRegion region = randomRegion(1);  // whose forward gives something back
    const PartitionFigures none = *partitionFigures(region, {}, Bytes(0));
    EXPECT_LT(none.time, region.graph.totalTime() + region.graph.totalTime());
    EXPECT_GT(none.time, region.graph.totalTime());
}

TEST(Partition, WhatFusedKernelsSeeHasNoBuffer) {
    test::GraphBuilder b;
    const auto given = b.constant(0);
    b.phase(Phase::Forward);
    const auto made = b.one("matrix", {given}, 100);
    const auto scaled = b.one("scale", {made}, 100);
    const auto shifted = b.one("shift", {scaled}, 100);
    const auto loss = b.one("sum", {shifted}, 4);
    b.phase(Phase::Backward);
    const auto gradient = b.one("matrix_backward", {made, loss}, 10);
    b.final(loss);
    b.final(gradient);
    JointRegion region = regionOf(b.build());
    EXPECT_EQ(own(region).peak, Bytes(300));
    for (const int op : {1, 2, 3}) region.fusible[static_cast<std::size_t>(op)] = true;
    EXPECT_EQ(own(region).peak, Bytes(114));  // the matrix, the loss, the gradient
}

TEST(Partition, TheCompilersOwnChoiceStaysWhereItFits) {
    const JointRegion region = regionOf(test::chain(8, 100'000));
    const auto made = planPartition(region, {own(region).peak, 1});
    ASSERT_TRUE(made) << made.error().what;
    EXPECT_TRUE(made->compilers);
    EXPECT_TRUE(made->within);
    EXPECT_EQ(made->kept, region.kept);
}

TEST(Partition, KeepsLessWithinABudget) {
    const JointRegion region = regionOf(test::chain(16, 100'000));
    const Bytes peak = own(region).peak;
    Nanoseconds last = own(region).time;
    std::size_t kept = region.kept.size();
    for (const int percent : {80, 60}) {
        const Bytes budget(peak.count() * percent / 100);
        const auto made = planPartition(region, {budget, 2});
        ASSERT_TRUE(made) << made.error().what;
        EXPECT_FALSE(made->compilers);
        EXPECT_TRUE(made->within);
        EXPECT_LE(made->figures.peak, budget);
        EXPECT_GE(made->figures.time, last);
        EXPECT_LT(made->kept.size(), kept);
        const auto again = partitionFigures(region, made->kept, budget);
        EXPECT_EQ(again->peak, made->figures.peak);
        EXPECT_EQ(again->time, made->figures.time);
        last = made->figures.time;
        kept = made->kept.size();
    }
}

TEST(Partition, TheLowestWhereNoneFits) {
    const JointRegion region = regionOf(test::chain(8, 100'000));
    const auto made = planPartition(region, {Bytes(100), 1});
    ASSERT_TRUE(made) << made.error().what;
    EXPECT_FALSE(made->within);
    EXPECT_LT(made->figures.peak, own(region).peak);
    JointRegion none = region;
    none.backward = kNone;
    EXPECT_FALSE(planPartition(none, {Bytes(100), 1}));
    none = region;
    none.fusible.clear();
    EXPECT_FALSE(planPartition(none, {Bytes(100), 1}));
}

TEST(Partition, KeepsNoMoreThanItMay) {
    TrainingGraph graph = test::chain(16, 100'000);
    const TensorIndex given = graph.ops[15].outputs[0].tensor;  // the forward gives it back
    std::erase_if(graph.events, [&](const Event& event) {
        return event.kind == Event::Kind::Release && event.index == graph.storageOf(given);
    });
    graph.finalTensors.push_back(given);
    ASSERT_EQ(graph.finish(), "");
    const JointRegion region = regionOf(graph);
    const Bytes all = own(region).kept;
    EXPECT_EQ(all, Bytes(1'500'000));
    Nanoseconds last = own(region).time;
    for (const std::int64_t most : {1'500'000, 800'000, 0}) {
        const auto made = planPartition(region, {Bytes(1), 1, Bytes(most)});
        ASSERT_TRUE(made) << made.error().what;
        EXPECT_TRUE(made->within);
        EXPECT_EQ(made->compilers, Bytes(most) == all);
        EXPECT_LE(made->figures.kept, Bytes(most));
        EXPECT_GT(made->figures.kept, Bytes(most) - Bytes(200'000));
        EXPECT_GE(made->figures.time, last);
        last = made->figures.time;
    }
}

TEST(Partition, WhatMustRunOnceIsKept) {
    TrainingGraph graph = test::chain(8, 100'000);
    for (Op& op : graph.ops)
        if (op.phase == Phase::Forward) op.opaque = true;
    ASSERT_EQ(graph.finish(), "");
    const JointRegion region = regionOf(graph);
    const auto made = planPartition(region, {Bytes(100), 1});
    ASSERT_TRUE(made) << made.error().what;
    EXPECT_EQ(made->figures.peak, own(region).peak);
    EXPECT_EQ(made->figures.time, own(region).time);
}

// Against every choice, on graphs of a few ops.
TEST(Partition, IsNearTheBestOfAllPartitions) {
    int found = 0;
    Nanoseconds all, best;
    for (unsigned seed = 0; seed < test::share(60); ++seed) {
        const JointRegion region = randomRegion(seed);
        const TrainingGraph& graph = region.graph;
        const PartitionJudge judge(region);
        const auto& choices = judge.choices();
        const Bytes budget(own(region).peak.count() * 17 / 20);
        std::optional<Nanoseconds> least;
        for (unsigned bits = 0; bits < 1U << choices.size(); ++bits) {
            KeptFlags kept(graph.storages.size());
            for (std::size_t k = 0; k < choices.size(); ++k) kept[choices[k]] = bits >> k & 1;
            const PartitionFigures figures = judge.figures(kept, budget);
            if (figures.peak <= budget && (!least || figures.time < *least)) least = figures.time;
        }
        const auto made = planPartition(region, {budget, 2});
        ASSERT_TRUE(made) << made.error().what;
        EXPECT_EQ(made->within, least.has_value()) << seed;
        if (!least || !made->within) continue;
        ++found;
        EXPECT_GE(made->figures.time, *least) << seed;
        all += made->figures.time;
        best += *least;
    }
    EXPECT_GT(found, test::share(20));
    EXPECT_LE(ratio(all, best), 1.05);
}

}  // namespace
}  // namespace hw::planners

// SPDX-License-Identifier: MIT
// `highwater` on passes that are too large for a matrix.
#include "planners/search/large_search.h"

#include <gtest/gtest.h>

#include "core/memory/evaluate.h"
#include "planners/plan_with.h"
#include "planners/search/segment_fill.h"
#include "tests/graphs/networks.h"

namespace hw::planners {
namespace {

using namespace hw::core;

TrainingGraph residual(int layers) {
    bench::ResidualNetwork network;
    network.layers = layers;
    return generate(network);
}

TrainingGraph lstm(int steps) {
    bench::LstmNetwork network;
    network.steps = steps;
    return generate(network);
}

PlanRequest within(const TrainingGraph& graph, double ratio) {
    PlanRequest request;
    const auto peak = static_cast<double>(evaluate(graph, baselineSchedule(graph)).peak.count());
    request.budget = Bytes(static_cast<std::int64_t>(ratio * peak));
    request.workLimit = 1;
    return request;
}

TEST(LargeSearch, KeepsTheBudgetAndItsBound) {
    for (const TrainingGraph& graph : {residual(101), lstm(60)})
        for (const double ratio : {0.8, 0.6}) {
            const PlanRequest request = within(graph, ratio);
            const Proposal made = searchLarge(graph, request, {});
            ASSERT_EQ(made.status, PlanStatus::Ok) << ratio << ": " << made.reason;
            const Evaluation judged = evaluate(graph, made.schedule);
            ASSERT_TRUE(judged.valid) << judged.why;
            EXPECT_LE(judged.peak, request.budget);
            ASSERT_TRUE(made.lowerBound);
            EXPECT_GT(*made.lowerBound, graph.totalTime()) << ratio;
            EXPECT_LE(*made.lowerBound, judged.time) << ratio;
            EXPECT_EQ(searchLarge(graph, request, {}).schedule.size(), made.schedule.size());
        }
}

TEST(LargeSearch, IsNearTheSearchOfMatrices) {
    const TrainingGraph graph = residual(101);
    PlanRequest request = within(graph, 0.6);
    const Nanoseconds large = evaluate(graph, searchLarge(graph, request, {}).schedule).time;
    request.workLimit = 20;
    const auto whole = planWith("highwater", graph, request);
    ASSERT_TRUE(whole);
    ASSERT_EQ(whole->status, PlanStatus::Ok);
    EXPECT_LE(whole->time, large) << "it begins with such plans";
    EXPECT_LT(ratio(large - whole->time, graph.totalTime()), 0.02);
}

TEST(LargeSearch, PlansWhatNoMatrixHolds) {
    const TrainingGraph graph = lstm(400);
    ASSERT_GT(graph.ops.size(), 45'000U);
    const PlanRequest request = within(graph, 0.6);
    const auto made = planWith("highwater", graph, request);
    ASSERT_TRUE(made);
    ASSERT_EQ(made->status, PlanStatus::Ok) << made->reason;
    EXPECT_LE(made->peak, request.budget);
    EXPECT_LT(ratio(made->time, graph.totalTime()), 1.2);
}

TEST(LargeSearch, EndsWhenItIsTold) {
    const TrainingGraph graph = residual(50);
    Progress progress;
    progress.cancelled = [] { return true; };
    const Proposal made = searchLarge(graph, within(graph, 0.6), progress);
    EXPECT_EQ(made.status, PlanStatus::Cancelled);
    EXPECT_TRUE(made.schedule.empty());
}

TEST(SegmentFill, AsksTheJudgeAboutSchedulesThatAreValid) {
    const TrainingGraph graph = lstm(60);
    const Bytes budget = within(graph, 0.6).budget;
    int fitting = 0, asked = 0;
    fillSegments(
        graph, budget,
        [&](const Schedule& schedule) {
            const Evaluation made = evaluate(graph, schedule);
            EXPECT_TRUE(made.valid) << made.why;
            fitting += made.peak <= budget ? 1 : 0;
            ++asked;
            return made;
        },
        [] { return false; });
    EXPECT_GT(fitting, 10);
    int more = 0;
    fillSegments(
        graph, budget,
        [&](const Schedule& schedule) {
            ++more;
            return evaluate(graph, schedule);
        },
        [&] { return more >= 5; });
    EXPECT_EQ(more, 5) << "of " << asked;
}

}  // namespace
}  // namespace hw::planners

// SPDX-License-Identifier: MIT
#include "planners/rank_plans.h"

#include <gtest/gtest.h>

#include "tests/unit/graph_builder.h"

namespace hw::planners {
namespace {

using namespace hw::core;

std::vector<SweepPoint> pointsFor(const TrainingGraph& graph, const std::string& planner) {
    const Bytes peak = evaluate(graph, baselineSchedule(graph)).peak;
    std::vector<SweepPoint> points;
    for (const int percent : {90, 30, 60, 45}) {
        PlanRequest request;
        request.budget = Bytes(peak.count() * percent / 100);
        request.workLimit = 20;
        points.push_back({&graph, planner, request});
    }
    return points;
}

TEST(Sweep, EqualsPlansOneByOneInTheOrderOfThePoints) {
    const TrainingGraph graph = test::chain(60, 1000);
    std::vector<SweepPoint> points = pointsFor(graph, "dtr:eqclass");
    for (const SweepPoint& point : pointsFor(graph, "chen-greedy")) points.push_back(point);
    double reported = 0;
    Progress progress;
    progress.report = [&](double share, std::string_view) { reported = std::max(reported, share); };
    const auto outcomes = planSweep(points, {}, progress);
    ASSERT_TRUE(outcomes);
    ASSERT_EQ(outcomes->size(), points.size());
    for (std::size_t i = 0; i < points.size(); ++i) {
        const auto alone = planWith(points[i].planner, graph, points[i].request);
        ASSERT_TRUE(alone);
        EXPECT_EQ((*outcomes)[i].planner, points[i].planner);
        EXPECT_EQ((*outcomes)[i].budget, points[i].request.budget);
        EXPECT_EQ((*outcomes)[i].status, alone->status);
        EXPECT_EQ((*outcomes)[i].time, alone->time);
        EXPECT_EQ((*outcomes)[i].plan.has_value(), alone->plan.has_value());
    }
    EXPECT_GT(reported, 0.5);
    EXPECT_LE(reported, 1.0);
}

TEST(Sweep, OurPlansNeverGetDearerWithTheBudget) {
    for (unsigned seed : {1U, 2U, 3U}) {
        const TrainingGraph graph = test::randomGraph(seed, 60);
        const auto points = pointsFor(graph, "highwater");
        const auto outcomes = planSweep(points, {.keepPlans = false});
        ASSERT_TRUE(outcomes);
        for (std::size_t a = 0; a < points.size(); ++a)
            for (std::size_t b = 0; b < points.size(); ++b) {
                if (points[a].request.budget > points[b].request.budget) continue;
                if ((*outcomes)[a].status != PlanStatus::Ok) continue;
                ASSERT_EQ((*outcomes)[b].status, PlanStatus::Ok);
                EXPECT_GE((*outcomes)[a].time, (*outcomes)[b].time);
                EXPECT_FALSE((*outcomes)[a].plan);
            }
    }
}

TEST(Sweep, SeveralGraphsAreOneSweepOnAnyNumberOfThreads) {
    const TrainingGraph small = test::chain(16, 1000), large = test::chain(24, 1000);
    std::vector<SweepPoint> points = pointsFor(small, "highwater");
    for (const char* planner : {"highwater", "dtr:lru"})
        for (const SweepPoint& point : pointsFor(large, planner)) points.push_back(point);
    const auto one = planSweep(points, {.jobs = 1}), three = planSweep(points, {.jobs = 3});
    ASSERT_TRUE(one);
    ASSERT_TRUE(three);
    std::size_t plans = 0;
    for (std::size_t i = 0; i < points.size(); ++i) {
        EXPECT_EQ((*one)[i].time, (*three)[i].time);
        if (!(*one)[i].plan) continue;
        ++plans;
        EXPECT_TRUE(evaluate(*points[i].graph, (*one)[i].plan->schedule).valid);
    }
    EXPECT_GT(plans, points.size() / 2);
}

/// Ranks whose steps are chains of so many ops.
std::vector<LoadedRank> ranksOf(const std::vector<int>& lengths) {
    std::vector<LoadedRank> ranks;
    for (const int length : lengths) {
        LoadedRank rank;
        rank.rank = static_cast<int>(ranks.size());
        rank.graph = test::chain(length, 1000);
        rank.captured = baselineSchedule(rank.graph);
        rank.baseline = evaluate(rank.graph, rank.captured);
        ranks.push_back(std::move(rank));
    }
    return ranks;
}

TEST(Sweep, RanksOfOneGraphArePlannedOnce) {
    const std::vector<LoadedRank> ranks = ranksOf({60, 40, 60});
    std::vector<RankPoint> points;
    for (const int percent : {80, 40}) {
        PlanRequest request;
        request.budget = Bytes(ranks[0].baseline.peak.count() * percent / 100);
        points.push_back({"dtr:eqclass", {3, request}});
    }
    // What the last rank may have is less than the plan of the first needs.
    points[0].requests[2].budget = Bytes(ranks[0].baseline.peak.count() / 2);
    const auto planned = planRanks(ranks, points, 2);
    ASSERT_TRUE(planned);
    ASSERT_EQ(planned->size(), 2u);
    for (std::size_t p = 0; p < 2; ++p)
        for (std::size_t r = 0; r < 3; ++r) {
            const RankOutcome& rank = (*planned)[p][r];
            ASSERT_TRUE(rank.planned());
            const Evaluation judged = evaluate(ranks[r].graph, rank.outcome.plan->schedule);
            EXPECT_TRUE(judged.valid);
            EXPECT_EQ(judged.peak, rank.outcome.peak);
            EXPECT_LE(judged.peak, points[p].requests[r].budget);
            EXPECT_EQ(rank.like.has_value(), p == 1 && r == 2);
        }
    EXPECT_EQ((*planned)[1][2].like, 0);
    EXPECT_GE(plannedTime(ranks, (*planned)[1]).time, recordedTime(ranks).time);
}

TEST(Sweep, ARankThatWaitsSparesMemoryForTheSameStepTime) {
    std::vector<LoadedRank> ranks = ranksOf({60, 40});
    for (LoadedRank& rank : ranks) {
        rank.graph.ops.back().sessionId = 1;
        rank.exchanges.emplace_back().op = 1;
    }
    PlanRequest request;
    request.budget = ranks[0].baseline.peak;
    const RankPoint point{"dtr:eqclass", {2, request}};
    auto planned = planRanks(ranks, {point}, 1);
    ASSERT_TRUE(planned);
    std::vector<RankOutcome>& outcomes = planned->front();
    const Nanoseconds before = plannedTime(ranks, outcomes).time;
    const Bytes peak = outcomes[1].outcome.peak;
    const auto spared = spareWhileWaiting(ranks, point, outcomes);
    ASSERT_TRUE(spared);
    EXPECT_EQ((*spared)[0], Bytes(0));
    EXPECT_GT((*spared)[1], Bytes(0));
    EXPECT_EQ(outcomes[1].outcome.peak, peak - (*spared)[1]);
    EXPECT_LE(plannedTime(ranks, outcomes).time.count(), before.count() * 1001 / 1000);
    EXPECT_TRUE(evaluate(ranks[1].graph, outcomes[1].outcome.plan->schedule).valid);
}

TEST(Sweep, AnUnknownPlannerEndsIt) {
    const TrainingGraph graph = test::chain(5, 10);
    const auto outcomes = planSweep({{&graph, "magic", {}}}, {});
    ASSERT_FALSE(outcomes);
    EXPECT_EQ(outcomes.error().code, ErrorCode::Usage);
}

}  // namespace
}  // namespace hw::planners

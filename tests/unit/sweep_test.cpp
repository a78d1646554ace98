// SPDX-License-Identifier: MIT
#include "planners/sweep.h"

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
        points.push_back({planner, request});
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
    const auto outcomes = planSweep(graph, points, true, progress);
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
        const auto outcomes = planSweep(graph, points, false, {});
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

TEST(Sweep, AnUnknownPlannerEndsIt) {
    const TrainingGraph graph = test::chain(5, 10);
    const auto outcomes = planSweep(graph, {{"magic", {}}}, false, {});
    ASSERT_FALSE(outcomes);
    EXPECT_EQ(outcomes.error().code, ErrorCode::Usage);
}

}  // namespace
}  // namespace hw::planners

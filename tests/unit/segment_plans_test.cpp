// SPDX-License-Identifier: MIT
// Plans of segments on an unrolled LSTM, where one rebuild easily leads far back.
#include "planners/search/segment_plans.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/memory/evaluate.h"
#include "planners/chen/segments.h"
#include "planners/plan_with.h"
#include "planners/program/cut_relaxation.h"
#include "tests/graphs/networks.h"

namespace hw::planners {
namespace {

using namespace hw::core;

class SegmentPlans : public testing::Test {
protected:
    static TrainingGraph makeGraph() {
        bench::LstmNetwork network;
        network.steps = 30, network.layers = 2, network.units = 64, network.classes = 50;
        return generate(network);
    }
    Bytes share(int percent) const {
        return Bytes(evaluate(graph_, baselineSchedule(graph_)).peak.count() * percent / 100);
    }
    StageIndex highest() const {
        StageJudge judge(model_, Bytes(0));
        judge.trim();
        return judge.highestStage();
    }

    const TrainingGraph graph_ = makeGraph();
    const StageModel model_{graph_};
};

TEST_F(SegmentPlans, FitAndCostLessThanSegmentsThatKeepNothing) {
    if (!haveSolver()) GTEST_SKIP() << "built without HiGHS; enable with: scripts/setup";
    for (const int percent : {70, 50, 30}) {
        const Bytes budget = share(percent);
        Candidates candidates(graph_, budget);
        const auto best = segmentPlans(
            model_, budget, highest(), [] { return false; }, candidates);
        ASSERT_TRUE(best) << percent;
        ASSERT_TRUE(best->fits()) << percent;
        StageJudge judge(model_, budget);
        judge.load(best->retention);
        const Evaluation judged = evaluate(graph_, judge.schedule());
        ASSERT_TRUE(judged.valid) << judged.why;
        EXPECT_LE(judged.peak, budget) << percent;
        EXPECT_EQ(judged.time, best->time) << percent;
        EXPECT_EQ(candidates.best()->time, best->time) << "not offered";
        PlanRequest request;
        request.budget = budget;
        const auto segments = planWith("chen-greedy", graph_, request);
        ASSERT_TRUE(segments);
        ASSERT_EQ(segments->status, PlanStatus::Ok) << percent;
        EXPECT_LT(best->time, segments->time) << percent;
    }
}

TEST_F(SegmentPlans, StopWhenAsked) {
    Candidates candidates(graph_, share(50));
    EXPECT_FALSE(segmentPlans(
        model_, share(50), highest(), [] { return true; }, candidates));
    EXPECT_FALSE(candidates.best());
}

TEST_F(SegmentPlans, WhatMustBeKeptIsResidentAndCostsMore) {
    if (!haveSolver()) GTEST_SKIP() << "built without HiGHS; enable with: scripts/setup";
    const StageIndex cut = highest();
    CutOptions options;
    options.integer = false;
    const auto free = solveCuts(model_, share(50), {cut}, options);
    ASSERT_TRUE(free);
    options.kept.assign(model_.itemCount(), false);
    std::size_t dropped = 0;
    for (std::size_t i = 0; i < model_.itemCount() && dropped < 40; ++i)
        if (!free->resident[0][i] && model_.born[i] < cut && model_.neededUntil[i] >= cut)
            options.kept[i] = true, ++dropped;
    ASSERT_EQ(dropped, 40U);
    const auto kept = solveCuts(model_, share(50), {cut}, options);
    ASSERT_TRUE(kept);
    EXPECT_GT(kept->bound, free->bound);
    for (std::size_t i = 0; i < model_.itemCount(); ++i)
        EXPECT_TRUE(kept->resident[0][i] || !options.kept[i]) << i;
}

TEST_F(SegmentPlans, CutsLieWhereTheLeastCrosses) {
    const chen::ForwardPass forward = chen::forwardPass(graph_, rebuildInfo(graph_));
    const std::int64_t all = forward.savedBytes(0, forward.end);
    const std::vector<std::int64_t> places{all / 4, all / 2, all * 3 / 4};
    const std::vector<chen::Cut> cuts = chen::narrowCuts(forward, places);
    ASSERT_EQ(cuts.size(), places.size());
    for (std::size_t i = 0; i < cuts.size(); ++i) {
        const std::int64_t at = forward.savedBefore[cuts[i].after + 1];
        EXPECT_LE(std::abs(at - places[i]), all / 8) << i;
        for (OpIndex op = 0; op + 1 < forward.end; ++op) {
            if (std::abs(forward.savedBefore[op + 1] - places[i]) > all / 16) continue;
            EXPECT_LE(forward.crossing[cuts[i].after], forward.crossing[op]) << i;
        }
    }
}

}  // namespace
}  // namespace hw::planners

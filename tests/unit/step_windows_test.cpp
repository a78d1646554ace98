// SPDX-License-Identifier: MIT
// Steps of several passes, cut where memory falls low, planned pass by pass and joined.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/graph/valleys.h"
#include "core/memory/evaluate.h"
#include "planners/program/cut_relaxation.h"
#include "planners/registry.h"
#include "planners/search/windowed_search.h"
#include "planners/windows/plan_windows.h"
#include "tests/unit/graph_builder.h"

namespace hw::planners {
namespace {

using namespace hw::core;

std::vector<Bytes> bytes(const std::vector<std::int64_t>& counts) {
    return {counts.begin(), counts.end()};
}

// Each pass goes through the layers forward and backward, with an input of its own that comes
// before it, and adds its gradients to those of the pass before, in place or not. A view of every
// activation is what the backward pass reads.
TrainingGraph accumulation(int passes, int layers, bool inPlace) {
    constexpr std::int64_t kBytes = 1000, kWeight = 100, kInput = 10;
    test::GraphBuilder b;
    std::vector<TensorIndex> weights, gradients;
    for (int i = 0; i < layers; ++i) weights.push_back(b.constant(kWeight));
    for (int pass = 0; pass < passes; ++pass) {
        b.phase(Phase::Forward);
        const TensorIndex input = b.constant(kInput);
        std::vector<TensorIndex> made{input}, seen;
        for (int i = 0; i < layers; ++i) {
            made.push_back(b.one("layer", {made.back(), weights[i]}, kBytes, 10 + i % 3));
            seen.push_back(b.view(made.back()));
        }
        b.phase(Phase::Backward);
        TensorIndex gradient = b.one("loss", {seen.back()}, kBytes, 5);
        for (int i = layers - 1; i >= 0; --i) {
            const auto back =
                b.op("backward", {gradient, seen[i], made[i], weights[i]}, {kBytes, kWeight}, 20);
            b.release(gradient);
            b.release(made[i + 1]);
            gradient = back[0];
            if (pass == 0) {
                gradients.insert(gradients.begin(), back[1]);
            } else if (inPlace) {
                b.inPlace("add_", {gradients[i], back[1]});
                b.release(back[1]);
            } else {
                const TensorIndex sum = b.one("add", {gradients[i], back[1]}, kWeight);
                b.release(gradients[i]);
                b.release(back[1]);
                gradients[i] = sum;
            }
        }
        b.release(gradient);
        b.release(input);
    }
    for (const TensorIndex weight : weights) b.final(weight);
    for (const TensorIndex gradient : gradients) b.final(gradient);
    return b.build();
}

Bytes baselinePeak(const TrainingGraph& graph) {
    return evaluate(graph, baselineSchedule(graph)).peak;
}

TEST(Valleys, LieBetweenPeaksAboveTheLevel) {
    const auto curve = bytes({1, 9, 1, 3, 1, 8, 5, 9, 0});
    EXPECT_EQ(splitAtValleys(curve, curve, Bytes(4)), (std::vector<std::size_t>{3}))
        << "3 is no peak, and 5 is not half of the way down from 8";
    EXPECT_EQ(splitAtValleys(curve, curve, Bytes(8)), std::vector<std::size_t>{3});
    EXPECT_TRUE(splitAtValleys(curve, curve, Bytes(9)).empty());
    EXPECT_EQ(halfHeight(curve, curve), Bytes(4));
    EXPECT_TRUE(splitAtValleys({}, {}, Bytes(0)).empty());
}

TEST(StepWindows, EqualPassesAreOneClass) {
    for (const bool inPlace : {false, true}) {
        const TrainingGraph graph = accumulation(5, 8, inPlace);
        const StepWindows windows(graph);
        ASSERT_TRUE(windows.several());
        ASSERT_EQ(windows.classes().size(), 2U) << "the first, and those that add to gradients";
        EXPECT_EQ(windows.classes()[0].count, 1U);
        EXPECT_EQ(windows.classes()[1].count, 4U);
        EXPECT_EQ(windows.peaks().size(), 5U);
    }
}

TEST(StepWindows, OneStepOfOnePassHasNone) {
    EXPECT_FALSE(StepWindows(test::chain(20, 1000)).several());
}

TEST(StepWindows, JoinedBaselinesAreABaseline) {
    for (const bool inPlace : {false, true}) {
        const TrainingGraph graph = accumulation(4, 6, inPlace);
        const StepWindows windows(graph);
        std::vector<Schedule> schedules;
        Bytes highest;
        for (const WindowClass& each : windows.classes()) {
            schedules.push_back(baselineSchedule(each.window.graph));
            highest = std::max(highest, baselinePeak(each.window.graph) + each.window.around);
        }
        EXPECT_GE(highest, baselinePeak(graph)) << "a window that fits must fit in the step";
        const Evaluation judged = evaluate(graph, windows.join(schedules));
        ASSERT_TRUE(judged.valid) << judged.why;
        EXPECT_EQ(judged.time, graph.totalTime());
        EXPECT_EQ(judged.peak, baselinePeak(graph));
    }
}

TEST(StepWindows, PlannersOfOnePassPlanEach) {
    const TrainingGraph graph = accumulation(4, 30, false);
    PlanRequest request;
    request.budget = Bytes(baselinePeak(graph).count() / 2);
    const auto planner = makePlanner("chen-greedy");
    const Proposal proposal =
        planWindows(StepWindows(graph), request, {},
                    [&](const WindowClass& of, const PlanRequest& part, const Progress& progress) {
                        return (*planner)->plan(of.window.graph, part, progress);
                    });
    ASSERT_EQ(proposal.status, PlanStatus::Ok) << proposal.reason;
    const Evaluation judged = evaluate(graph, proposal.schedule);
    ASSERT_TRUE(judged.valid) << judged.why;
    EXPECT_LE(judged.peak, request.budget);
    EXPECT_LT(ratio(judged.time, graph.totalTime()), 1.4) << "more than one extra forward each";
}

TEST(WindowedSearch, KeepsTheBudgetAndItsBound) {
    for (const bool inPlace : {false, true}) {
        const TrainingGraph graph = accumulation(4, 12, inPlace);
        PlanRequest request;
        request.budget = Bytes(baselinePeak(graph).count() * 6 / 10);
        request.workLimit = 20;
        const StepWindows windows(graph, request.budget);
        ASSERT_TRUE(windows.several());
        const Proposal first = searchWindows(graph, windows, request, {});
        ASSERT_EQ(first.status, PlanStatus::Ok) << first.reason;
        const Evaluation judged = evaluate(graph, first.schedule);
        ASSERT_TRUE(judged.valid) << judged.why;
        EXPECT_LE(judged.peak, request.budget);
        EXPECT_GT(judged.time, graph.totalTime());
        if (haveSolver()) {
            ASSERT_TRUE(first.lowerBound);
            EXPECT_LE(*first.lowerBound, judged.time);
            EXPECT_GT(*first.lowerBound, graph.totalTime());
        }
        const Proposal second = searchWindows(graph, windows, request, {});
        EXPECT_EQ(first.lowerBound, second.lowerBound);
        EXPECT_EQ(evaluate(graph, second.schedule).time, judged.time);
    }
}

TEST(BoundByParts, CountsEveryPass) {
    if (!haveSolver()) GTEST_SKIP() << "built without HiGHS; enable with: scripts/setup";
    const auto extra = [](int passes) {
        const TrainingGraph graph = accumulation(passes, 8, false);
        const StageModel model(graph);
        const Bytes budget(baselinePeak(graph).count() * 6 / 10);
        std::vector<StageIndex> cuts;
        const StepWindows windows(graph, budget);
        for (OpIndex peak : windows.peaks()) {
            while (model.lazy(peak)) ++peak;
            cuts.push_back(model.stageOf[peak]);
        }
        return boundByParts(model, budget, cuts, {}).bound - graph.totalTime();
    };
    const Nanoseconds more = extra(5) - extra(4);
    EXPECT_GT(more, Nanoseconds(0));
    EXPECT_EQ(extra(6) - extra(5), more) << "equal passes take equal times";
}

}  // namespace
}  // namespace hw::planners

// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/models/step_curve.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/memory/evaluate.h"
#include "core/plan/codec.h"
#include "planners/plan_with.h"
#include "planners/registry.h"
#include "planners/schedule/schedule_trace.h"
#include "tests/models/test_graphs.h"
#include "viewer/models/document.h"
#include "viewer/models/lanes.h"

namespace hw::viewer {
namespace {

using core::Action;
using core::Bytes;
using core::Category;
using core::Nanoseconds;

Bytes of(const Moment& moment, Category category) {
    return moment.byBand[bandOf(category)];
}

// The sum over the categories is the judge's figure at every op, and what is listed as resident is
// what the judge holds resident.
void expectAgreesWithJudge(const core::TrainingGraph& graph, const core::Schedule& schedule) {
    std::vector<core::MemoryPoint> judged;
    const core::Evaluation verdict = core::evaluate(graph, schedule, judged);
    ASSERT_TRUE(verdict.valid) << verdict.why;
    const StepCurve curve = stepCurve(graph, schedule);
    EXPECT_EQ(curve.time, verdict.time);
    EXPECT_EQ(curve.peak, verdict.peak);
    std::size_t ops = 0;
    for (const Moment& moment : curve.moments) {
        Bytes sum;
        for (const Bytes part : moment.byBand) sum += part;
        ASSERT_EQ(sum, judged[moment.action].during) << "at action " << moment.action;
        ASSERT_EQ(moment.total, sum);
        ASSERT_EQ(moment.begin, judged[moment.action].begin);
        ASSERT_EQ(moment.end, judged[moment.action].end);
        ++ops;
    }
    const auto runs = std::count_if(schedule.begin(), schedule.end(), [](const Action& action) {
        return action.kind != core::ActionKind::Free;
    });
    EXPECT_EQ(ops, static_cast<std::size_t>(runs));
}

TEST(StepCurve, SmallGraphByHand) {
    const core::TrainingGraph graph = samples::smallGraph();
    const StepCurve curve = stepCurve(graph, core::baselineSchedule(graph));
    ASSERT_EQ(curve.moments.size(), 3U);
    EXPECT_EQ(curve.moments[0].total, Bytes(140));
    EXPECT_EQ(curve.moments[1].total, Bytes(225));
    EXPECT_EQ(of(curve.moments[1], Category::Workspace), Bytes(25));
    EXPECT_EQ(of(curve.moments[1], Category::Activation), Bytes(40));
    EXPECT_EQ(curve.moments[2].total, Bytes(210));
    EXPECT_EQ(curve.peak, Bytes(225));
    EXPECT_EQ(curve.peakMoment, 1U);
    EXPECT_EQ(curve.time, Nanoseconds(10));
    EXPECT_EQ(curve.momentAt(Nanoseconds(0)), 0U);
    EXPECT_EQ(curve.momentAt(Nanoseconds(3)), 1U);
    EXPECT_EQ(curve.momentAt(Nanoseconds(7)), 1U);
    EXPECT_EQ(curve.momentAt(Nanoseconds(1000)), 2U);
    EXPECT_EQ(largestResident(graph, curve, 2, 2), (std::vector<core::StorageIndex>{0, 2}));
    EXPECT_EQ(largestResident(graph, curve, 0, 9), (std::vector<core::StorageIndex>{0, 1}));
    expectAgreesWithJudge(graph, core::baselineSchedule(graph));
}

TEST(StepCurve, RecomputationChargesDuplicatesAndMarksItself) {
    const core::TrainingGraph graph = samples::smallGraph();
    const core::Schedule schedule{
        Action::compute(0),        Action::compute(1), Action::free(1), Action::recompute(0, {0}),
        Action::recompute(0, {0}), Action::compute(2), Action::free(1), Action::free(2)};
    expectAgreesWithJudge(graph, schedule);
    const StepCurve curve = stepCurve(graph, schedule);
    EXPECT_TRUE(curve.moments[2].recomputed);
    EXPECT_EQ(curve.moments[2].total, Bytes(200));
    EXPECT_EQ(curve.moments[3].total, Bytes(240))
        << "the copy that is dropped again counts while the op runs";
    // Storage 1 is there twice: moments 0-1, and from its recomputation on.
    std::vector<std::pair<int, int>> stays;
    for (const Lifetime& lifetime : curve.lifetimes)
        if (lifetime.storage == 1) stays.emplace_back(lifetime.first, lifetime.last);
    EXPECT_EQ(stays, (std::vector<std::pair<int, int>>{{0, 1}, {2, 4}}));
}

// Between the ends of two captured ops lies what the plan makes again for the second.
TEST(StepCurve, WhatWasMeasuredLiesOnThePlansAxis) {
    const core::TrainingGraph graph = samples::smallGraph();
    const StepCurve plan =
        stepCurve(graph, {Action::compute(0), Action::compute(1), Action::free(1),
                          Action::recompute(0, {0}), Action::compute(2), Action::free(2)});
    const StepCurve measured = measuredCurve(plan, {Bytes(140), Bytes(230), Bytes(215)});
    ASSERT_EQ(measured.moments.size(), 3U);
    EXPECT_EQ(measured.moments[1].begin, Nanoseconds(3));
    EXPECT_EQ(measured.moments[1].end, Nanoseconds(8));
    EXPECT_EQ(measured.moments[2].op, 2);
    EXPECT_EQ(measured.moments[2].begin, Nanoseconds(8)) << "where its recomputation begins";
    EXPECT_EQ(measured.moments[2].end, Nanoseconds(13));
    EXPECT_EQ(measured.time, plan.time);
    EXPECT_EQ(measured.peak, Bytes(230));
    EXPECT_EQ(measured.peakMoment, 1U);
    EXPECT_TRUE(measuredCurve(plan, {Bytes(140), Bytes(230)}).moments.empty());
    EXPECT_TRUE(measuredCurve(plan, std::vector<Bytes>(4)).moments.empty())
        << "of another kind of step";
}

class StepCurveOnLogs : public samples::OnLogs {};
HW_WITH_LOGS(StepCurveOnLogs);

TEST_P(StepCurveOnLogs, EveryLogAgreesWithTheJudge) {
    for (const char* name : {"resnet32", "unet", "transformer", "treelstm"}) {
        SCOPED_TRACE(name);
        core::Result<DocumentPointer> document = loadDocument(logPath(name));
        ASSERT_TRUE(document) << document.error().what;
        const core::TrainingGraph& graph = (*document)->graph;
        expectAgreesWithJudge(graph, (*document)->baseline);
        const StepCurve& curve = (*document)->curve;
        for (const std::size_t at : {curve.moments.size() / 3, curve.peakMoment}) {
            std::vector<core::StorageIndex> listed =
                largestResident(graph, curve, at, graph.storages.size());
            std::sort(listed.begin(), listed.end());
            EXPECT_EQ(listed,
                      core::residentDuring(graph, (*document)->baseline, curve.moments[at].action));
        }
    }
}

TEST_P(StepCurveOnLogs, PlansAgreeWithTheJudge) {
    core::Result<DocumentPointer> document = loadDocument(logPath("unet"));
    ASSERT_TRUE(document) << document.error().what;
    for (const planners::PlannerInfo& info : planners::plannerList()) {
        core::Result<PlanPointer> plan =
            computePlan(**document, info.name,
                        Bytes(static_cast<std::int64_t>((*document)->peak().count() * 0.7)), 2);
        ASSERT_TRUE(plan) << plan.error().what;
        if ((*plan)->ok()) expectAgreesWithJudge((*document)->graph, (*plan)->schedule);
    }
}

TEST(StepCurve, CodecsTakeTheTimeThatTheJudgeCharges) {
    const core::TrainingGraph graph = samples::smallGraph();
    const core::Schedule schedule{
        Action::compute(0), Action::encode(1, std::string(core::kMaskCodec), Bytes(13)),
        Action::compute(1), Action::decode(1),
        Action::compute(2), Action::free(1),
        Action::free(2)};
    // Op 1 reads storage 1 at a time when only its encoded form is there: not what is tested.
    core::TrainingGraph apart = graph;
    apart.ops[1].inputs = {{0, 0}};
    ASSERT_EQ(apart.finish(), "");
    expectAgreesWithJudge(apart, schedule);
    const StepCurve curve = stepCurve(apart, schedule);
    ASSERT_EQ(curve.moments.size(), 5U);
    const Nanoseconds codec = core::codecTime(core::kMaskCodec, Bytes(40), Bytes(13));
    ASSERT_GT(codec, Nanoseconds(0));
    EXPECT_EQ(curve.moments[1].end - curve.moments[1].begin, codec);
    EXPECT_EQ(curve.time, Nanoseconds(10) + codec * 2);
    EXPECT_EQ(of(curve.moments[1], Category::Activation), Bytes(40 + 13)) << "both forms";
    EXPECT_EQ(of(curve.moments[2], Category::Activation), Bytes(13));
    const planners::ScheduleTrace trace = planners::traceOf(apart, schedule);
    ASSERT_EQ(trace.steps.size(), 3U);
    EXPECT_EQ(trace.steps[2].begin, curve.moments[4].begin);
}

// What the window draws of echo's encodings ends when the judge says that the plan ends.
TEST(StepCurve, EchosEncodingsAgreeWithTheJudge) {
    core::Result<DocumentPointer> document = loadDocument(SAMPLE_SESSION);
    ASSERT_TRUE(document) << document.error().what;
    core::Result<PlanPointer> plan = computePlan(**document, "echo", (*document)->peak(), 2);
    ASSERT_TRUE(plan) << plan.error().what;
    ASSERT_TRUE((*plan)->ok());
    const auto codecs =
        std::count_if((*plan)->schedule.begin(), (*plan)->schedule.end(),
                      [](const Action& action) { return action.kind == core::ActionKind::Encode; });
    ASSERT_GT(codecs, 0);
    const core::TrainingGraph& graph = (*document)->graph;
    expectAgreesWithJudge(graph, (*plan)->schedule);
    EXPECT_EQ((*plan)->curve.time, core::evaluate(graph, (*plan)->schedule).time);
    EXPECT_EQ((*plan)->curve.time, (*plan)->time);
}

TEST(LevelOfDetail, NeverLosesAPeakNorMixesMoments) {
    StepCurve curve;
    for (int i = 0; i < 10000; ++i) {
        Moment moment;
        moment.begin = Nanoseconds(i * 10);
        moment.end = Nanoseconds(i * 10 + 10);
        moment.total = Bytes(i == 7777 ? 1'000'000 : 1000 + i % 37);
        curve.moments.push_back(moment);
    }
    curve.time = Nanoseconds(100'000);
    const std::vector<std::size_t> seen = visibleMoments(curve, Nanoseconds(0), curve.time, 100);
    EXPECT_LE(seen.size(), 2 * 102U);
    EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
    EXPECT_EQ(std::set<std::size_t>(seen.begin(), seen.end()).size(), seen.size());
    EXPECT_EQ(std::count(seen.begin(), seen.end(), 7777U), 1);
    for (std::size_t bucket = 0; bucket < 100;
         ++bucket) {  // the lowest of every column is there too
        const auto in = [&](std::size_t i) { return i >= bucket * 100 && i < (bucket + 1) * 100; };
        EXPECT_TRUE(std::any_of(seen.begin(), seen.end(), [&](std::size_t i) {
            return in(i) && curve.moments[i].total == Bytes(1000);
        })) << bucket;
    }
    // Close up, every moment is drawn.
    const std::vector<std::size_t> near =
        visibleMoments(curve, Nanoseconds(500), Nanoseconds(900), 100);
    ASSERT_EQ(near.size(), 43U);
    EXPECT_EQ(near.front(), 49U);
    EXPECT_EQ(near.back(), 91U);
    EXPECT_TRUE(visibleMoments(StepCurve(), Nanoseconds(0), Nanoseconds(1), 10).empty());
}

TEST(Lanes, NeighboursOfOneLayerAndPhaseAreOneSpan) {
    const core::TrainingGraph graph = samples::smallGraph();
    const Lanes lanes = lanesOf(graph, stepCurve(graph, core::baselineSchedule(graph)));
    ASSERT_EQ(lanes.phases.size(), 2U);
    EXPECT_EQ(lanes.phases[0].end, Nanoseconds(8));
    EXPECT_EQ(lanes.phases[1].phase, core::Phase::Backward);
    ASSERT_EQ(lanes.layers.size(), 2U) << "the same layer, forward and backward, is two spans";
    EXPECT_EQ(lanes.layers[0].end, Nanoseconds(8));
    EXPECT_EQ(lanes.layers[1].begin, Nanoseconds(8));
    EXPECT_EQ(lanes.ops.size(), 3U);
    EXPECT_EQ(opFamily("aten::convolution_backward"), OpFamily::Matrix);
    EXPECT_EQ(opFamily("aten::native_batch_norm"), OpFamily::Normalization);
    EXPECT_EQ(opFamily("aten::_softmax"), OpFamily::Reduction);
    EXPECT_EQ(opText(graph, 0), "convolution · conv");
}

}  // namespace
}  // namespace hw::viewer

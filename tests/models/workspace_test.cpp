// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/models/workspace.h"

#include <gtest/gtest.h>

#include <QSignalSpy>
#include <QTest>
#include <algorithm>

#include "tests/graphs/networks.h"
#include "tests/models/test_graphs.h"

namespace hw::viewer {
namespace {

constexpr int kPatience = 120'000;  // milliseconds; only a hang lasts so long

TEST(Workspace, OpensInTheBackgroundAndSaysWhatFailed) {
    Workspace workspace;
    QSignalSpy failed(&workspace, &Workspace::failed);
    workspace.open(QStringLiteral("/nonexistent/run.hws"));
    EXPECT_EQ(workspace.document(), nullptr);
    ASSERT_TRUE(QTest::qWaitFor([&] { return failed.count() == 1; }, kPatience));
    EXPECT_TRUE(failed[0][0].toString().contains(QStringLiteral("run.hws")));
    EXPECT_EQ(workspace.document(), nullptr);
    EXPECT_FALSE(workspace.busy());
}

class WorkspaceOnLogs : public samples::OnLogs {};
HW_WITH_LOGS(WorkspaceOnLogs);

TEST_P(WorkspaceOnLogs, BudgetBringsPlansAndThePlanOfThePlannerThatWasChosen) {
    Workspace workspace;
    ASSERT_TRUE(workspace.openNow(logPath("unet"), {}, std::nullopt));
    EXPECT_NEAR(workspace.budgetRatio(), Workspace::kDefaultRatio, 1e-6);
    workspace.setBudgetRatio(0.7);
    EXPECT_TRUE(workspace.busy());
    ASSERT_TRUE(QTest::qWaitFor([&] { return !workspace.busy(); }, kPatience));
    ASSERT_TRUE(workspace.activePlan());
    EXPECT_EQ(workspace.activePlan()->budget, workspace.budget());
    EXPECT_LE(workspace.activePlan()->peak, workspace.budget());
    PlanPointer dtr;
    for (const Workspace::Row& row : workspace.rows()) {
        ASSERT_TRUE(row.plan);
        if (row.plan->ok()) {
            EXPECT_LE(workspace.activePlan()->overhead, row.plan->overhead);
        }
        if (row.planner == QLatin1String("dtr:eqclass")) dtr = row.plan;
    }
    ASSERT_TRUE(dtr);
    workspace.choose(dtr);
    workspace.setBudgetRatio(0.8);
    ASSERT_TRUE(QTest::qWaitFor([&] { return !workspace.busy(); }, kPatience));
    EXPECT_EQ(workspace.activePlan()->planner, QStringLiteral("dtr:eqclass"));
    EXPECT_EQ(workspace.activePlan()->budget, workspace.budget());
    EXPECT_EQ(workspace.frontier(QStringLiteral("dtr:eqclass")).size(), 2U);
}

TEST_P(WorkspaceOnLogs, ABoundHoldsForEveryPlanAtItsBudgetAndBelow) {
    Workspace workspace;
    ASSERT_TRUE(workspace.openNow(logPath("unet"), {}, std::nullopt));
    workspace.selectPlanners({QStringLiteral("dtr:eqclass")});
    workspace.placeBudget(0.7);
    ASSERT_TRUE(workspace.planNow());
    const PlanPointer dtr = workspace.activePlan();
    ASSERT_TRUE(dtr);
    EXPECT_FALSE(workspace.gap(dtr)) << "nobody has proven anything yet";
    workspace.selectPlanners({QStringLiteral("highwater")});
    ASSERT_TRUE(workspace.planNow());
    const std::vector<PlanPointer> ours = workspace.frontier(QStringLiteral("highwater"));
    ASSERT_EQ(ours.size(), 1U);
    if (!ours[0]->lowerBound) GTEST_SKIP() << "a build without HiGHS proves no bounds";
    ASSERT_TRUE(workspace.gap(dtr));
    EXPECT_NEAR(*workspace.gap(dtr) - *workspace.gap(ours[0]), dtr->overhead - ours[0]->overhead,
                1e-9);
    workspace.selectPlanners({QStringLiteral("chen-greedy")});
    workspace.placeBudget(0.9);
    ASSERT_TRUE(workspace.planNow());
    ASSERT_EQ(workspace.frontier(QStringLiteral("chen-greedy")).size(), 1U);
    EXPECT_FALSE(workspace.gap(workspace.frontier(QStringLiteral("chen-greedy"))[0]))
        << "more memory may be faster than what was proven for less";
}

TEST_P(WorkspaceOnLogs, BelowTheFloorNothingIsPlanned) {
    Workspace workspace;
    ASSERT_TRUE(workspace.openNow(logPath("unet"), {}, std::nullopt));
    workspace.setBudget(workspace.document()->floor - core::Bytes(1));
    EXPECT_FALSE(workspace.busy());
    EXPECT_FALSE(workspace.activePlan());
}

TEST_P(WorkspaceOnLogs, EveryPlaceOfTheBudgetHasAnAnswer) {
    Workspace workspace;
    workspace.selectPlanners({});  // what is asked for by moving alone
    ASSERT_TRUE(workspace.openNow(logPath("unet"), {}, std::nullopt));
    const core::Bytes peak = workspace.document()->peak(), floor = workspace.document()->floor;
    EXPECT_EQ(workspace.answer(floor - core::Bytes(1)).kind, Answer::Kind::Infeasible);
    EXPECT_EQ(workspace.answer(peak).kind, Answer::Kind::Nearest) << "nothing was planned yet";
    EXPECT_FALSE(workspace.answer(peak).plan);

    QSignalSpy answers(&workspace, &Workspace::answersChanged);
    for (const double share : {0.95, 0.9, 0.85, 0.8}) workspace.previewBudget(share);
    const auto wanted = core::Bytes(static_cast<std::int64_t>(0.8 * double(peak.count())));
    ASSERT_TRUE(QTest::qWaitFor([&] { return workspace.answer(wanted).kind == Answer::Kind::Fits; },
                                kPatience));
    ASSERT_TRUE(workspace.activePlan());
    EXPECT_LE(workspace.activePlan()->peak, wanted);
    EXPECT_EQ(workspace.answer(wanted).plan, workspace.activePlan());
    EXPECT_TRUE(workspace.rows().empty()) << "a first plan is no row of the comparison";

    // Below what is known: the nearest, until a plan is found.
    const Answer below = workspace.answer(workspace.activePlan()->peak - core::Bytes(1));
    if (below.kind == Answer::Kind::Nearest) {
        ASSERT_TRUE(below.plan);
        EXPECT_LE(below.plan->peak, workspace.activePlan()->peak);
    }
}

TEST_P(WorkspaceOnLogs, PlansThatAskForNoBudgetAnswerFarDown) {
    Workspace workspace;
    workspace.selectPlanners({});
    for (int documents = 0; documents < 2; ++documents) {  // of each document, not of the first
        ASSERT_TRUE(workspace.openNow(logPath("treelstm"), {}, std::nullopt));
        const core::Bytes peak = workspace.document()->peak();
        const auto place = core::Bytes(peak.count() / 8);
        ASSERT_GT(place, workspace.document()->floor);
        workspace.previewBudget(0.95);
        ASSERT_TRUE(QTest::qWaitFor(
            [&] { return workspace.answer(place).kind == Answer::Kind::Fits; }, kPatience));
        const PlanPointer plan = workspace.answer(place).plan;
        EXPECT_LE(plan->peak, place);
        EXPECT_EQ(plan->header.budget, plan->budget);
        // Known for that place, it is known for all above.
        for (const double share : {0.2, 0.4, 0.6, 0.8}) {
            const Answer above = workspace.answer(
                core::Bytes(static_cast<std::int64_t>(share * double(peak.count()))));
            ASSERT_EQ(above.kind, Answer::Kind::Fits);
            EXPECT_LE(above.plan->overhead, plan->overhead + 5e-4);
        }
    }
}

TEST_P(WorkspaceOnLogs, FrontierReachesDownToTheFloor) {
    Workspace workspace;
    EXPECT_EQ(workspace.frontierRatios().front(), 1.0);
    ASSERT_TRUE(workspace.openNow(logPath("unet"), {}, std::nullopt));
    const std::vector<double> ratios = workspace.frontierRatios();
    EXPECT_TRUE(std::is_sorted(ratios.rbegin(), ratios.rend()));
    EXPECT_EQ(ratios.front(), 1.0);
    EXPECT_GE(std::count_if(ratios.begin(), ratios.end(),
                            [&](double share) {
                                return share >= ratio(workspace.document()->floor,
                                                      workspace.document()->peak());
                            }),
              5);
}

TEST_P(WorkspaceOnLogs, SelectedPlannersGetWhatTheOthersHave) {
    Workspace workspace;
    const QStringList usual = workspace.selectedPlanners();
    EXPECT_TRUE(usual.contains(QStringLiteral("highwater")));
    EXPECT_LT(usual.size(), Workspace::planners().size());
    QSignalSpy changed(&workspace, &Workspace::plannersChanged);
    workspace.selectPlanners({QStringLiteral("dtr:lru"), QStringLiteral("none")});
    EXPECT_EQ(workspace.selectedPlanners(),
              (QStringList{QStringLiteral("none"), QStringLiteral("dtr:lru")}))
        << "in the order of the list";
    ASSERT_TRUE(workspace.openNow(logPath("unet"), {}, std::nullopt));
    workspace.setBudgetRatio(0.8);
    workspace.requestFrontier();
    ASSERT_TRUE(QTest::qWaitFor([&] { return !workspace.busy(); }, kPatience));
    EXPECT_TRUE(workspace.frontier(QStringLiteral("dtr:largest")).empty());
    workspace.selectPlanners({QStringLiteral("dtr:largest"), QStringLiteral("magic")});
    EXPECT_EQ(workspace.selectedPlanners(), QStringList{QStringLiteral("dtr:largest")});
    ASSERT_TRUE(QTest::qWaitFor([&] { return !workspace.busy(); }, kPatience));
    EXPECT_GT(workspace.frontier(QStringLiteral("dtr:largest")).size(), 2U);
    EXPECT_EQ(changed.count(), 2);
}

TEST_P(WorkspaceOnLogs, SelectionStaysWithinTheStep) {
    Workspace workspace;
    workspace.stepOp(1);
    EXPECT_EQ(workspace.selectedOp(), core::kNone);
    ASSERT_TRUE(workspace.openNow(logPath("resnet32"), {}, std::nullopt));
    QSignalSpy moved(&workspace, &Workspace::selectionChanged);
    const Document& document = *workspace.document();
    workspace.stepOp(1);
    EXPECT_EQ(workspace.selectedOp(), document.curve.moments[document.curve.peakMoment].op)
        << "the first step lands on the peak";
    workspace.selectOp(0);
    workspace.stepOp(-1);
    EXPECT_EQ(workspace.selectedOp(), 0);
    workspace.selectOp(static_cast<core::OpIndex>(document.graph.ops.size()));
    EXPECT_EQ(workspace.selectedOp(), 0);
    EXPECT_EQ(moved.count(), 2);
}

TEST(Workspace, WhatALargePlanDoesIsFoundInTheBackground) {
    for (const int steps : {20, 240}) {
        bench::LstmNetwork network;
        network.steps = steps;
        const auto document = documentOf(bench::generate(network), QStringLiteral("lstm"));
        ASSERT_TRUE(document);
        const auto plan = computePlan(**document, "chen-sqrt", (*document)->peak(), 1, {});
        ASSERT_TRUE(plan);
        Workspace workspace;
        QSignalSpy found(&workspace, &Workspace::activeChangesFound);
        workspace.show(*document);
        workspace.choose(*plan);
        ASSERT_EQ(workspace.activePlan(), *plan);
        const bool large = (*document)->graph.ops.size() > 20'000;
        EXPECT_EQ(large, steps == 240);
        EXPECT_EQ(workspace.activeChanges() == nullptr, large);
        EXPECT_EQ(workspace.inspectedPlan().plan == nullptr, large);
        if (large) {
            ASSERT_TRUE(QTest::qWaitFor([&] { return !found.isEmpty(); }, kPatience));
        }
        ASSERT_TRUE(workspace.activeChanges());
        EXPECT_EQ(workspace.activeChanges()->size(), planChanges(**document, **plan)->size());
        EXPECT_EQ(workspace.inspectedPlan().plan, *plan);
        EXPECT_EQ(found.size(), large ? 1 : 0);
        workspace.show(*document);  // without a plan
        EXPECT_FALSE(workspace.activeChanges());
    }
}

TEST_P(WorkspaceOnLogs, CancelForgetsWhatWasAsked) {
    Workspace workspace;
    ASSERT_TRUE(workspace.openNow(logPath("treelstm"), {}, std::nullopt));
    workspace.requestFrontier();
    EXPECT_TRUE(workspace.busy());
    workspace.cancel();
    EXPECT_FALSE(workspace.busy());
    workspace.setBudgetRatio(1.0);  // asked again afterwards, it is computed
    ASSERT_TRUE(QTest::qWaitFor([&] { return !workspace.busy(); }, kPatience));
    EXPECT_FALSE(workspace.frontier(QStringLiteral("none")).empty());
}

}  // namespace
}  // namespace hw::viewer

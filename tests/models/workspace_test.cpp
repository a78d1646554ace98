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
    QSignalSpy failed(&workspace.loader(), &DocumentLoader::failed);
    workspace.loader().open(QStringLiteral("/nonexistent/run.hws"));
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
    ASSERT_TRUE(workspace.loader().openNow(logPath("unet"), {}, std::nullopt));
    EXPECT_NEAR(workspace.budgetRatio(), Workspace::kDefaultRatio, 1e-6);
    workspace.setBudgetRatio(0.7);
    EXPECT_TRUE(workspace.busy());
    ASSERT_TRUE(QTest::qWaitFor([&] { return !workspace.busy(); }, kPatience));
    ASSERT_TRUE(workspace.active().plan());
    EXPECT_EQ(workspace.active().plan()->budget, workspace.budget());
    EXPECT_LE(workspace.active().plan()->peak, workspace.budget());
    PlanPointer dtr;
    for (const PlanRow& row : workspace.plans().rows(workspace.budget())) {
        ASSERT_TRUE(row.plan);
        if (row.plan->ok()) {
            EXPECT_LE(workspace.active().plan()->overhead, row.plan->overhead);
        }
        if (row.planner == QLatin1String("dtr:eqclass")) dtr = row.plan;
    }
    ASSERT_TRUE(dtr);
    workspace.choose(dtr);
    workspace.setBudgetRatio(0.8);
    ASSERT_TRUE(QTest::qWaitFor([&] { return !workspace.busy(); }, kPatience));
    EXPECT_EQ(workspace.active().plan()->planner, QStringLiteral("dtr:eqclass"));
    EXPECT_EQ(workspace.active().plan()->budget, workspace.budget());
    EXPECT_EQ(workspace.plans().frontier(QStringLiteral("dtr:eqclass")).size(), 2U);
}

TEST_P(WorkspaceOnLogs, ABoundHoldsForEveryPlanAtItsBudgetAndBelow) {
    Workspace workspace;
    ASSERT_TRUE(workspace.loader().openNow(logPath("unet"), {}, std::nullopt));
    workspace.selectPlanners({QStringLiteral("dtr:eqclass")});
    workspace.placeBudget(0.7);
    ASSERT_TRUE(workspace.planNow());
    const PlanPointer dtr = workspace.active().plan();
    ASSERT_TRUE(dtr);
    EXPECT_FALSE(workspace.plans().gap(dtr)) << "nothing is proven yet";
    workspace.selectPlanners({QStringLiteral("highwater")});
    ASSERT_TRUE(workspace.planNow());
    const std::vector<PlanPointer> ours = workspace.plans().frontier(QStringLiteral("highwater"));
    ASSERT_EQ(ours.size(), 1U);
    if (!ours[0]->lowerBound) GTEST_SKIP() << "a build without HiGHS proves no bounds";
    ASSERT_TRUE(workspace.plans().gap(dtr));
    EXPECT_NEAR(*workspace.plans().gap(dtr) - *workspace.plans().gap(ours[0]),
                dtr->overhead - ours[0]->overhead, 1e-9);
    workspace.selectPlanners({QStringLiteral("chen-greedy")});
    workspace.placeBudget(0.9);
    ASSERT_TRUE(workspace.planNow());
    ASSERT_EQ(workspace.plans().frontier(QStringLiteral("chen-greedy")).size(), 1U);
    EXPECT_FALSE(
        workspace.plans().gap(workspace.plans().frontier(QStringLiteral("chen-greedy"))[0]))
        << "more memory may be faster than what was proven for less";
}

TEST_P(WorkspaceOnLogs, BelowTheFloorNothingIsPlanned) {
    Workspace workspace;
    ASSERT_TRUE(workspace.loader().openNow(logPath("unet"), {}, std::nullopt));
    workspace.setBudget(workspace.document()->floor - core::Bytes(1));
    EXPECT_FALSE(workspace.busy());
    EXPECT_FALSE(workspace.active().plan());
}

TEST_P(WorkspaceOnLogs, EveryPlaceOfTheBudgetHasAnAnswer) {
    Workspace workspace;
    workspace.selectPlanners({});  // what is asked for by moving alone
    ASSERT_TRUE(workspace.loader().openNow(logPath("unet"), {}, std::nullopt));
    const core::Bytes peak = workspace.document()->peak(), floor = workspace.document()->floor;
    EXPECT_EQ(workspace.plans().answer(floor - core::Bytes(1)).kind, Answer::Kind::Infeasible);
    EXPECT_EQ(workspace.plans().answer(peak).kind, Answer::Kind::Nearest)
        << "nothing was planned yet";
    EXPECT_FALSE(workspace.plans().answer(peak).plan);

    QSignalSpy answers(&workspace, &Workspace::answersChanged);
    for (const double share : {0.95, 0.9, 0.85, 0.8}) workspace.previewBudget(share);
    const auto wanted = core::Bytes(static_cast<std::int64_t>(0.8 * double(peak.count())));
    ASSERT_TRUE(QTest::qWaitFor(
        [&] { return workspace.plans().answer(wanted).kind == Answer::Kind::Fits; }, kPatience));
    ASSERT_TRUE(workspace.active().plan());
    EXPECT_LE(workspace.active().plan()->peak, wanted);
    EXPECT_EQ(workspace.plans().answer(wanted).plan, workspace.active().plan());
    EXPECT_TRUE(workspace.plans().rows(workspace.budget()).empty())
        << "a first plan is no row of the comparison";

    // Below what is known: the nearest, until a plan is found.
    const Answer below = workspace.plans().answer(workspace.active().plan()->peak - core::Bytes(1));
    if (below.kind == Answer::Kind::Nearest) {
        ASSERT_TRUE(below.plan);
        EXPECT_LE(below.plan->peak, workspace.active().plan()->peak);
    }
}

TEST_P(WorkspaceOnLogs, PlansThatAskForNoBudgetAnswerFarDown) {
    Workspace workspace;
    workspace.selectPlanners({});
    for (int documents = 0; documents < 2; ++documents) {  // of each document, not of the first
        ASSERT_TRUE(workspace.loader().openNow(logPath("treelstm"), {}, std::nullopt));
        const core::Bytes peak = workspace.document()->peak();
        const auto place = core::Bytes(peak.count() / 8);
        ASSERT_GT(place, workspace.document()->floor);
        workspace.previewBudget(0.95);
        ASSERT_TRUE(QTest::qWaitFor(
            [&] { return workspace.plans().answer(place).kind == Answer::Kind::Fits; }, kPatience));
        const PlanPointer plan = workspace.plans().answer(place).plan;
        EXPECT_LE(plan->peak, place);
        EXPECT_EQ(plan->header.budget, plan->budget);
        // Known for that place, it is known for all above.
        for (const double share : {0.2, 0.4, 0.6, 0.8}) {
            const Answer above = workspace.plans().answer(
                core::Bytes(static_cast<std::int64_t>(share * double(peak.count()))));
            ASSERT_EQ(above.kind, Answer::Kind::Fits);
            EXPECT_LE(above.plan->overhead, plan->overhead + 5e-4);
        }
    }
}

TEST_P(WorkspaceOnLogs, FrontierReachesDownToTheFloor) {
    Workspace workspace;
    EXPECT_EQ(workspace.plans().frontierRatios().front(), 1.0);
    ASSERT_TRUE(workspace.loader().openNow(logPath("unet"), {}, std::nullopt));
    const std::vector<double> ratios = workspace.plans().frontierRatios();
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
    EXPECT_LT(usual.size(), plannerNames().size());
    QSignalSpy changed(&workspace, &Workspace::plannersChanged);
    workspace.selectPlanners({QStringLiteral("dtr:lru"), QStringLiteral("none")});
    EXPECT_EQ(workspace.selectedPlanners(),
              (QStringList{QStringLiteral("none"), QStringLiteral("dtr:lru")}))
        << "in the order of the list";
    ASSERT_TRUE(workspace.loader().openNow(logPath("unet"), {}, std::nullopt));
    workspace.setBudgetRatio(0.8);
    workspace.requestFrontier();
    ASSERT_TRUE(QTest::qWaitFor([&] { return !workspace.busy(); }, kPatience));
    EXPECT_TRUE(workspace.plans().frontier(QStringLiteral("dtr:largest")).empty());
    workspace.selectPlanners({QStringLiteral("dtr:largest"), QStringLiteral("magic")});
    EXPECT_EQ(workspace.selectedPlanners(), QStringList{QStringLiteral("dtr:largest")});
    ASSERT_TRUE(QTest::qWaitFor([&] { return !workspace.busy(); }, kPatience));
    EXPECT_GT(workspace.plans().frontier(QStringLiteral("dtr:largest")).size(), 2U);
    EXPECT_EQ(changed.count(), 2);
}

TEST_P(WorkspaceOnLogs, NothingIsSelectedOfAnotherDocument) {
    Workspace workspace;
    ASSERT_TRUE(workspace.loader().openNow(logPath("unet"), {}, std::nullopt));
    workspace.selection().selectOp(1);
    workspace.selection().selectRange(TimeRange{core::Nanoseconds(1), core::Nanoseconds(2)});
    const WorkspaceState before = workspace.state();
    ASSERT_TRUE(workspace.loader().openNow(logPath("unet"), {}, std::nullopt));
    EXPECT_EQ(workspace.selection().current(), Selection{});
    EXPECT_FALSE(workspace.selection().range());
    workspace.setState(before);
    EXPECT_EQ(workspace.state(), before);
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
        QSignalSpy found(&workspace.active(), &ActivePlan::changesFound);
        workspace.show(*document);
        workspace.choose(*plan);
        ASSERT_EQ(workspace.active().plan(), *plan);
        const bool large = (*document)->graph.ops.size() > 20'000;
        EXPECT_EQ(large, steps == 240);
        EXPECT_EQ(workspace.active().changes() == nullptr, large);
        EXPECT_EQ(workspace.active().inspected().plan == nullptr, large);
        if (large) {
            ASSERT_TRUE(QTest::qWaitFor([&] { return !found.isEmpty(); }, kPatience));
        }
        ASSERT_TRUE(workspace.active().changes());
        EXPECT_EQ(workspace.active().changes()->size(), planChanges(**document, **plan)->size());
        EXPECT_EQ(workspace.active().inspected().plan, *plan);
        EXPECT_EQ(found.size(), large ? 1 : 0);
        workspace.show(*document);  // without a plan
        EXPECT_FALSE(workspace.active().changes());
    }
}

TEST_P(WorkspaceOnLogs, CancelForgetsWhatWasAsked) {
    Workspace workspace;
    ASSERT_TRUE(workspace.loader().openNow(logPath("treelstm"), {}, std::nullopt));
    workspace.requestFrontier();
    EXPECT_TRUE(workspace.busy());
    workspace.cancel();
    EXPECT_FALSE(workspace.busy());
    workspace.setBudgetRatio(1.0);  // asked again afterwards, it is computed
    ASSERT_TRUE(QTest::qWaitFor([&] { return !workspace.busy(); }, kPatience));
    EXPECT_FALSE(workspace.plans().frontier(QStringLiteral("none")).empty());
}

}  // namespace
}  // namespace hw::viewer

// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/models/compare_model.h"

#include <gtest/gtest.h>

#include <QAbstractItemModelTester>
#include <QSortFilterProxyModel>
#include <QTemporaryDir>
#include <QTest>

#include "core/import/import.h"
#include "core/session/session_writer.h"
#include "planners/plan_with.h"
#include "planners/registry.h"
#include "tests/models/test_graphs.h"

namespace hw::viewer {
namespace {

class CompareModelOnLogs : public samples::OnLogs {};
HW_WITH_LOGS(CompareModelOnLogs);

TEST_P(CompareModelOnLogs, IsASoundModelWhilePlansArrive) {
    Workspace workspace;
    CompareModel model(workspace);
    QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::Fatal);
    EXPECT_EQ(model.rowCount(), 0);
    ASSERT_TRUE(workspace.loader().openNow(logPath("unet"), {}, std::nullopt));
    workspace.setBudgetRatio(0.7);
    ASSERT_EQ(model.rowCount(), workspace.selectedPlanners().size());
    EXPECT_EQ(model.index(0, CompareModel::Overhead).data().toString(),
              QStringLiteral("computing…"));
    ASSERT_TRUE(QTest::qWaitFor([&] { return !workspace.busy(); }, 120'000));
    int active = 0;
    for (int row = 0; row < model.rowCount(); ++row) {
        const PlanPointer plan = model.planAt(row);
        ASSERT_TRUE(plan);
        EXPECT_EQ(model.index(row, CompareModel::Planner).data().toString(), plan->planner);
        if (plan->planner == QLatin1String("none")) {
            EXPECT_FALSE(plan->ok());
            EXPECT_EQ(model.index(row, CompareModel::Overhead).data().toString(),
                      QStringLiteral("does not fit"));
            EXPECT_EQ(model.index(row, CompareModel::PredictedPeak).data().toString(),
                      QStringLiteral("—"));
        }
        active += model.index(row, 0).data(CompareModel::kActiveRole).toBool();
    }
    EXPECT_EQ(active, 1);

    workspace.planEvery();
    ASSERT_EQ(model.rowCount(), static_cast<int>(planners::plannerList().size()));
    ASSERT_TRUE(QTest::qWaitFor([&] { return !workspace.busy(); }, 120'000));

    QSortFilterProxyModel sorted;
    sorted.setSourceModel(&model);
    sorted.setSortRole(CompareModel::kSortRole);
    sorted.sort(CompareModel::Overhead);
    for (int row = 1; row < sorted.rowCount(); ++row)
        EXPECT_LE(
            sorted.index(row - 1, CompareModel::Overhead).data(CompareModel::kSortRole).toDouble(),
            sorted.index(row, CompareModel::Overhead).data(CompareModel::kSortRole).toDouble());
}

// A session with a stored plan and a run of it shows what was predicted beside what was measured.
TEST_P(CompareModelOnLogs, StoredPlansShowTheirRuns) {
    QTemporaryDir folder;
    const std::string path = folder.filePath("run.hws").toStdString();
    {
        core::Result<core::SessionWriter> session = core::SessionWriter::create(path);
        ASSERT_TRUE(session) << session.error().what;
        ASSERT_TRUE(core::importFile(logPath("resnet32"), "auto", *session));
        const core::Result<core::TrainingGraph> graph =
            core::loadGraph(*session, *session->lastStep());
        ASSERT_TRUE(graph) << graph.error().what;
        const core::Bytes peak = core::evaluate(*graph, core::baselineSchedule(*graph)).peak;
        planners::PlanRequest request;
        request.budget = core::Bytes(static_cast<std::int64_t>(peak.count() * 0.5));
        const auto outcome = planners::planWith("dtr:eqclass", *graph, request);
        ASSERT_TRUE(outcome && outcome->plan);
        core::PlanRow row;
        row.step = *session->lastStep();
        row.plan = *outcome->plan;
        row.recomputedOps = outcome->recomputedOps;
        row.solveSeconds = 0.25;
        const core::Result<std::int64_t> plan = session->insert(row);
        ASSERT_TRUE(plan) << plan.error().what;
        core::RunRow run;
        run.plan = *plan;
        run.step = row.step;
        run.predictedPeak = outcome->peak;
        run.measuredPeak = outcome->peak + core::Bytes(20'000'000);
        run.time = core::Nanoseconds(1'250);
        run.baselineTime = core::Nanoseconds(1'000);
        run.details =
            R"({"ops":[{"op":3,"measured_ns":5,"recomputation_measured_ns":7},{"op":-1},{"op":1000000},{}]})";
        run.compared = 300;
        run.different = 2;
        ASSERT_TRUE(session->insert(run));
    }
    Workspace workspace;
    CompareModel model(workspace);
    ASSERT_TRUE(workspace.loader().openNow(path, {}, std::nullopt));
    ASSERT_EQ(model.rowCount(), 1);
    const auto text = [&](int column) { return model.index(0, column).data().toString(); };
    const PlanPointer plan = model.planAt(0);
    EXPECT_EQ(plan->origin, PlanEntry::Origin::Session);
    EXPECT_EQ(text(CompareModel::Planner), QStringLiteral("dtr:eqclass"));
    EXPECT_EQ(text(CompareModel::PlanningTime), QStringLiteral("0.25 s"));
    EXPECT_EQ(text(CompareModel::MeasuredPeak),
              workspace.document()->size.text(plan->peak + core::Bytes(20'000'000)));
    EXPECT_EQ(text(CompareModel::MeasuredOverhead), QStringLiteral("+25.00 %"));
    ASSERT_EQ(plan->measuredOps.size(), 1U) << "the others are none of the graph";
    EXPECT_EQ(plan->measuredOps.at(3).time, core::Nanoseconds(5));
    EXPECT_EQ(plan->measuredOps.at(3).again, core::Nanoseconds(7));
    EXPECT_EQ(text(CompareModel::Results), QStringLiteral("2 differ"));
    EXPECT_EQ(text(CompareModel::Gap), QStringLiteral("—"));

    workspace.setBudgetRatio(0.6);  // its planner is asked, too
    QStringList names;
    for (int row = 0; row < model.rowCount(); ++row)
        names << model.index(row, CompareModel::Planner).data().toString();
    EXPECT_EQ(names.count(QStringLiteral("dtr:eqclass")), 1);
    EXPECT_EQ(names.count(QStringLiteral("dtr:eqclass (stored)")), 1);
}

}  // namespace
}  // namespace hw::viewer

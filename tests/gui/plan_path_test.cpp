// SPDX-License-Identifier: GPL-3.0-or-later
// From a budget to a plan in another tool's hands: typed budgets, rows by budget, clicks, exports.
#include <gtest/gtest.h>

#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>

#include "tests/gui/patience.h"
#include "tests/models/test_graphs.h"
#include "viewer/models/layer_model.h"
#include "viewer/models/plan_model.h"
#include "viewer/models/tool.h"
#include "viewer/panels/compare_panel.h"
#include "viewer/panels/layers_panel.h"
#include "viewer/panels/main_window.h"
#include "viewer/panels/plan_export.h"
#include "viewer/panels/plan_panel.h"
#include "viewer/panels/whatif_panel.h"

namespace hw::viewer {
namespace {

TEST(Budget, IsReadAsPeopleWriteIt) {
    const core::Bytes peak(10'000'000'000);
    const auto bytes = [&](const char* typed) {
        const auto budget = budgetOf(QString::fromUtf8(typed), peak);
        return budget ? budget->count() : -1;
    };
    EXPECT_EQ(bytes("5000000001"), 5'000'000'001);
    EXPECT_EQ(bytes(" 4.5 GB "), 4'500'000'000);
    EXPECT_EQ(bytes("4GiB"), std::int64_t{4} << 30);
    EXPECT_EQ(bytes("62.5 %"), 6'250'000'000);
    EXPECT_EQ(bytes("5.00 GB · 50 %"), 5'000'000'000) << "as it is shown, with another share";
    for (const char* wrong : {"", "lots", "-3 GB", "0 %", "130 %", "5 parsecs"})
        EXPECT_EQ(bytes(wrong), -1) << wrong;
}

class PlanPath : public ::testing::Test {
protected:
    void SetUp() override {
        window_.workspace().selectPlanners(
            {QStringLiteral("none"), QStringLiteral("chen-greedy"), QStringLiteral("dtr:eqclass")});
        window_.resize(1440, 868);
        window_.show();
        ASSERT_TRUE(QTest::qWaitForWindowExposed(&window_));
        const QString own = folder_.filePath(QStringLiteral("sample.hws"));
        ASSERT_TRUE(QFile::copy(QStringLiteral(SAMPLE_SESSION), own));
        window_.open(own);
        ASSERT_TRUE(QTest::qWaitFor([&] { return window_.workspace().active().plan() != nullptr; },
                                    kPatience));
    }
    Workspace& workspace() { return window_.workspace(); }
    void types(const char* text) {
        BudgetField& field = window_.panel<WhatIfPanel>().budget();
        field.setFocus();
        field.selectAll();
        QTest::keyClicks(&field, QString::fromUtf8(text));
        QTest::keyClick(&field, Qt::Key_Return);
    }
    QTemporaryDir folder_;
    MainWindow window_;
};

TEST_F(PlanPath, ABudgetIsTypedToTheByte) {
    const std::int64_t wanted = workspace().document()->peak().count() * 7 / 10 + 12345;
    types(QByteArray::number(static_cast<qlonglong>(wanted)).constData());
    EXPECT_EQ(workspace().budget(), core::Bytes(wanted));
    types("no size");
    EXPECT_EQ(workspace().budget(), core::Bytes(wanted)) << "what is none changes nothing";
    QTest::keyClick(&window_.panel<WhatIfPanel>().budget(), Qt::Key_Escape);
    EXPECT_TRUE(window_.panel<WhatIfPanel>().budget().text().contains(QStringLiteral("70 %")));
    types("80%");
    EXPECT_NEAR(workspace().budgetRatio(), 0.8, 1e-6);
}

TEST_F(PlanPath, CompareHasTheBudgetsOwnPlansFirst) {
    ASSERT_FALSE(workspace().document()->plans.empty()) << "the sample keeps plans";
    types("85 %");
    ASSERT_TRUE(QTest::qWaitFor([&] { return !workspace().busy(); }, kPatience));
    const std::vector<PlanRow> rows = workspace().plans().rows(workspace().budget());
    bool others = false;
    core::Bytes last = core::Bytes(INT64_MAX);
    for (const PlanRow& row : rows) {
        const bool own = !row.plan || row.plan->budget == workspace().budget();
        EXPECT_FALSE(own && others) << row.planner.toStdString() << " after another budget's";
        others = others || !own;
        if (own) continue;
        EXPECT_LE(row.plan->budget, last);
        last = row.plan->budget;
    }
    EXPECT_TRUE(others);
    const ComparePanel& compare = window_.panel<ComparePanel>();
    EXPECT_FALSE(compare.table().isColumnHidden(CompareModel::Budget));
    const QModelIndex first = compare.model().index(0, 0);
    const QModelIndex end = compare.model().index(compare.model().rowCount() - 1, 0);
    EXPECT_FALSE(first.data(CompareModel::kOtherBudgetRole).toBool());
    EXPECT_TRUE(end.data(CompareModel::kOtherBudgetRole).toBool());
}

// Every column is the row.
TEST_F(PlanPath, AClickOnAnyCellSelects) {
    auto* layers = window_.findChild<LayersPanel*>()->findChild<TableView*>();
    layers->expandAll();
    for (const int column : {LayerModel::AtPeak, LayerModel::Layer}) {
        workspace().selection().selectOp(core::kNone);
        const QModelIndex row = layers->indexBelow(layers->shown().index(0, 0));
        const QRect cell = layers->visualRect(row.siblingAtColumn(column));
        QTest::mouseClick(layers->viewport(), Qt::LeftButton, {}, cell.center());
        EXPECT_EQ(workspace().selection().current().kind, Selection::Kind::Layer) << column;
    }
    PlanPanel& panel = window_.panel<PlanPanel>();
    window_.findChild<QDockWidget*>(QStringLiteral("plan"))->raise();
    auto* plan = panel.findChild<TableView*>();
    ASSERT_TRUE(QTest::qWaitFor([&] { return plan->shown().rowCount() > 0; }, kPatience));
    QTest::qWait(50);
    workspace().selection().selectOp(core::kNone);
    const QModelIndex change = plan->shown().index(0, 0, plan->shown().index(0, 0));
    ASSERT_TRUE(change.isValid());
    plan->scrollTo(change);
    const QRect why = plan->visualRect(change.siblingAtColumn(PlanModel::Why));
    QTest::mouseClick(plan->viewport(), Qt::LeftButton, {},
                      QPoint(why.left() + 12, why.center().y()));
    EXPECT_NE(workspace().selection().current().kind, Selection::Kind::None);
}

TEST_F(PlanPath, WhatARunMeasuredStandsAboveTheTable) {
    const auto& stored = workspace().document()->plans;
    const auto run = std::find_if(stored.begin(), stored.end(), [](const PlanPointer& plan) {
        return isPlanned(plan) && plan->measuredPeak;
    });
    ASSERT_NE(run, stored.end()) << "the sample was run";
    workspace().choose(*run);
    const auto* outcome = window_.findChild<QLabel*>(QStringLiteral("runOutcome"));
    ASSERT_TRUE(outcome->isVisible());
    EXPECT_TRUE(outcome->text().contains(QStringLiteral("measured: peak")));
    EXPECT_TRUE(outcome->text().contains(workspace().document()->size.text(*(*run)->measuredPeak)));
    const ComparePanel& compare = window_.panel<ComparePanel>();
    const QModelIndex active = compare.model().index(compare.model().activeRow(), 0);
    ASSERT_TRUE(active.isValid());
    const QModelIndex shown = compare.table().shown().mapFromSource(active);
    EXPECT_TRUE(
        compare.table().viewport()->rect().contains(compare.table().visualRect(shown).center()))
        << "its row is in sight";
}

TEST_F(PlanPath, WhatIsMissingForARunIsSaidBeforeIt) {
    ComparePanel& compare = window_.panel<ComparePanel>();
    const auto& stored = workspace().document()->plans;
    const auto fresh = std::find_if(stored.begin(), stored.end(), [](const PlanPointer& plan) {
        return isPlanned(plan) && !plan->measuredPeak;
    });
    ASSERT_NE(fresh, stored.end());
    workspace().choose(*fresh);
    compare.setRunner(QStringLiteral("there is no torch – install it"), false);
    const auto* outcome = window_.findChild<QLabel*>(QStringLiteral("runOutcome"));
    EXPECT_TRUE(outcome->text().contains(QStringLiteral("cannot run here")));
    EXPECT_TRUE(outcome->text().contains(QStringLiteral("install it")));
}

TEST_F(PlanPath, EveryKindOfExportIsWritten) {
    types("90 %");  // checkpoints of whole layers reach that too
    ASSERT_TRUE(QTest::qWaitFor([&] { return !workspace().busy(); }, kPatience));
    PlanExport writer(&window_);
    QSignalSpy told(&writer, &PlanExport::told), failed(&writer, &PlanExport::failed);
    for (const ExportKind& kind : exportKinds()) {
        const QString path = folder_.filePath(QStringLiteral("out") + QLatin1String(kind.ending));
        EXPECT_EQ(&exportKindOf(path), &kind);
        EXPECT_TRUE(exportFilter().contains(QLatin1String(kind.ending)));
        told.clear();
        writer.write(workspace().document(), workspace().active().plan(), path);
        ASSERT_TRUE(QTest::qWaitFor(
            [&] {
                return !failed.isEmpty() ||
                       (!told.isEmpty() && told.back()[0].toString().startsWith("saved"));
            },
            kPatience));
        EXPECT_TRUE(failed.isEmpty())
            << kind.ending << ": " << failed.value(0).value(0).toString().toStdString();
        failed.clear();
        EXPECT_TRUE(QFileInfo::exists(path)) << kind.ending;
    }
}

}  // namespace
}  // namespace hw::viewer

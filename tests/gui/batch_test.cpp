// SPDX-License-Identifier: GPL-3.0-or-later
// The view of the largest batch: a family of two recordings, budgets, and the program at a size
// that was never recorded.
#include <gtest/gtest.h>

#include <QAbstractItemModelTester>
#include <QTemporaryDir>
#include <QTest>

#include "core/family/predicted_session.h"
#include "core/session/session_writer.h"
#include "tests/gui/patience.h"
#include "viewer/panels/batch_panel.h"
#include "viewer/panels/main_window.h"

namespace hw::viewer {
namespace {

constexpr int kLayers = 8;

/// Forward through some layers, whose results the backward pass reads once more.
void writeRecord(const std::string& path, std::int64_t batch) {
    auto writer = core::SessionWriter::create(path);
    ASSERT_TRUE(writer);
    ASSERT_TRUE(writer->begin());
    core::ProcessRow process;
    process.framework = "pytorch";
    ASSERT_TRUE(writer->insert(process));
    const std::string sizes = "[" + std::to_string(batch) + ",1000]";
    const auto storage = [&](std::int64_t id, std::optional<std::int64_t> op, std::int64_t seq,
                             std::optional<std::int64_t> freed) {
        core::StorageRow row;
        row.id = id, row.bytes = core::Bytes(batch * 4000);
        row.creator = op, row.allocSeq = seq, row.freeSeq = freed;
        ASSERT_TRUE(writer->insert(row));
        ASSERT_TRUE(writer->insert(core::TensorRow{id, id, op, "float32", sizes, "[1000,1]", 0}));
    };
    storage(0, std::nullopt, 0, std::nullopt);
    for (std::int64_t i = 0; i < 2 * kLayers; ++i) {
        const bool forward = i < kLayers;
        core::OpRow op;
        op.id = i, op.seq = i + 1;
        op.name = "aten::layer";
        op.phase = forward ? core::Phase::Forward : core::Phase::Backward;
        op.duration = core::Nanoseconds(1000 + 100 * batch);
        op.inputs.push_back({i, 0});
        if (!forward) op.inputs.push_back({2 * kLayers - 1 - i, 0});
        op.outputs.push_back({i + 1, true});
        ASSERT_TRUE(writer->insert(op));
        // An activation is last read by its backward op, a gradient by the next one.
        const std::int64_t last = forward ? 2 * kLayers - i : i + 3;
        storage(i + 1, i, i + 1,
                i + 1 == 2 * kLayers ? std::optional<std::int64_t>() : std::optional(last + 1));
    }
    core::StepRow step;
    step.firstSeq = 0, step.endSeq = 3 * kLayers + 3;
    ASSERT_TRUE(writer->insert(step, {2 * kLayers}));
    ASSERT_TRUE(writer->commit());
}

class Batch : public ::testing::Test {
protected:
    void SetUp() override {
        for (const int batch : {2, 4}) writeRecord(path(batch), batch);
        window_.resize(1400, 900);
        window_.show();
        ASSERT_TRUE(QTest::qWaitForWindowExposed(&window_));
        window_.workspace().selectPlanners({QStringLiteral("none"), QStringLiteral("chen-greedy")});
        window_.open(QString::fromStdString(path(2)), {});
        ASSERT_TRUE(
            QTest::qWaitFor([&] { return window_.workspace().document() != nullptr; }, kPatience));
        auto* dock = window_.findChild<QDockWidget*>(QStringLiteral("batch"));
        ASSERT_NE(dock, nullptr);
        dock->show();
        dock->raise();
        ASSERT_TRUE(QTest::qWaitFor([&] { return panel().isVisible(); }, kPatience));
    }
    std::string path(int batch) const {
        return folder_.filePath(QStringLiteral("b%1.hws").arg(batch)).toStdString();
    }
    BatchPanel& panel() { return window_.panel<BatchPanel>(); }
    QString cell(int row, BatchModel::Column column) {
        return panel().table().shown().index(row, column).data().toString();
    }
    void types(const char* text) {
        BudgetField& field = panel().budgetField();
        field.setFocus();
        field.selectAll();
        QTest::keyClicks(&field, QString::fromUtf8(text));
        QTest::keyClick(&field, Qt::Key_Return);
    }
    void addTheOther() {
        window_.workspace().loader().setRecords({QString::fromStdString(path(4))});
        ASSERT_TRUE(
            QTest::qWaitFor([&] { return panel().table().shown().rowCount() == 2; }, 60000));
    }

    QTemporaryDir folder_;
    MainWindow window_;
};

TEST_F(Batch, OneRecordingAsksForAnother) {
    ASSERT_TRUE(QTest::qWaitFor(
        [&] { return panel().empty().text().contains(QLatin1String("two")); }, kPatience));
    EXPECT_TRUE(panel().empty().text().contains(QLatin1String("one size only")));
    EXPECT_FALSE(panel().budgetField().isEnabled());
}

TEST_F(Batch, TwoTellTheLargestOfEachPlanner) {
    addTheOther();
    const QAbstractItemModelTester tester(panel().table().shown().sourceModel());
    EXPECT_EQ(cell(0, BatchModel::Planner), QLatin1String("none"));
    EXPECT_EQ(cell(0, BatchModel::Largest), QLatin1String("4")) << "the budget is its peak";
    EXPECT_GT(cell(1, BatchModel::Largest).toInt(), 4);
    ASSERT_EQ(panel().sizes().curves().size(), 2U);
    for (const BatchPlot::Curve& curve : panel().sizes().curves())
        EXPECT_GE(curve.marked, 0) << curve.planner.toStdString();
    const auto drawn = [&] { return panel().budgets().curves().front().points.size(); };
    ASSERT_TRUE(QTest::qWaitFor([&] { return drawn() == 6; }, 60000)) << drawn();

    types("100 kB");
    ASSERT_TRUE(
        QTest::qWaitFor([&] { return cell(0, BatchModel::Largest) == QLatin1String("2"); }, 60000));
    types("plenty");
    EXPECT_EQ(cell(0, BatchModel::Largest), QLatin1String("2")) << "stays as it was";
}

TEST_F(Batch, AClickOpensTheProgramAtThatSize) {
    addTheOther();
    const BatchPlot::Curve planned = panel().sizes().curves().front();
    ASSERT_EQ(planned.planner, QLatin1String("none"));
    const BatchPlot::Curve& greedy = panel().sizes().curves().back();
    const auto size = static_cast<std::int64_t>(greedy.points.back().x());
    QTest::mouseClick(&panel().sizes(), Qt::LeftButton, {},
                      panel().sizes().pixelOf(greedy.points.back()).toPoint());
    const Workspace& workspace = window_.workspace();
    ASSERT_TRUE(QTest::qWaitFor([&] { return workspace.document()->path != path(2); }, 60000));
    const auto session = core::Session::open(workspace.document()->path);
    ASSERT_TRUE(session);
    const auto predicted = core::predictedSize(*session);
    ASSERT_TRUE(predicted);
    EXPECT_EQ(*predicted, size);
    ASSERT_TRUE(workspace.active().plan()) << "the plan came along";
    EXPECT_EQ(workspace.active().plan()->planner, QLatin1String("chen-greedy"));
    EXPECT_EQ(panel().table().shown().rowCount(), 2) << "the family stays";
}

}  // namespace
}  // namespace hw::viewer

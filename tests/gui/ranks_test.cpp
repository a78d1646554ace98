// SPDX-License-Identifier: GPL-3.0-or-later
// The ranks of a session side by side, and any of them a click away.
#include <gtest/gtest.h>

#include <QAbstractItemModelTester>
#include <QTemporaryDir>
#include <QTest>

#include "core/session/session_writer.h"
#include "tests/gui/patience.h"
#include "viewer/panels/main_window.h"
#include "viewer/panels/ranks_panel.h"

namespace hw::viewer {
namespace {

constexpr std::int64_t kRanks = 3, kSteps = 2, kOps = 4;

/// Rank r makes storages of r + 1 kB in ops of r + 1 ms, and meets the others after them.
void writeStep(core::SessionWriter& writer, std::int64_t rank, std::int64_t number) {
    const std::int64_t base = rank * core::kIdsOfProcess + number * 100;
    core::StepRow step;
    step.id = number * kRanks + rank, step.process = rank + 1;
    step.firstSeq = base, step.endSeq = base + 2 * kOps;
    step.beginNs = number * 1000000, step.endNs = step.beginNs + 500000;
    const std::string names[kOps] = {"aten::f", "aten::g", "_c10d_functional::all_reduce",
                                     "_c10d_functional::wait_tensor"};
    for (std::int64_t i = 0; i < kOps; ++i) {
        core::OpRow op;
        op.id = base + i, op.seq = base + i, op.name = names[i];
        op.args = R"({"a":[{"t":0},"sum","0"],"k":{}})";
        op.beginNs = step.beginNs + i;
        op.duration = core::Nanoseconds(i < 2 ? (rank + 1) * 1000000 : 1000);
        if (i > 0) op.inputs.push_back({base + i - 1, 0});
        op.outputs.push_back({base + i, i < 3});
        core::StorageRow storage;
        storage.id = base + i, storage.bytes = core::Bytes((rank + 1) * 1000);
        storage.creator = op.id, storage.allocSeq = op.seq, storage.freeSeq = base + kOps + i;
        ASSERT_TRUE(writer.insert(op));
        const std::int64_t of = i < 3 ? base + i : base + 2;
        if (i < 3) {
            ASSERT_TRUE(writer.insert(storage));
        }
        ASSERT_TRUE(
            writer.insert(core::TensorRow{base + i, of, op.id, "float32", "[10]", "[1]", 0}));
    }
    ASSERT_TRUE(writer.insert(step, {}));
}

class Ranks : public ::testing::Test {
protected:
    void SetUp() override {
        const std::string path = folder_.filePath(QStringLiteral("run.hws")).toStdString();
        auto writer = core::SessionWriter::create(path);
        ASSERT_TRUE(writer);
        ASSERT_TRUE(writer->begin());
        for (std::int64_t rank = 0; rank < kRanks; ++rank) {
            core::ProcessRow process;
            process.id = rank + 1, process.rank = static_cast<int>(rank);
            process.framework = "pytorch", process.host = rank < 2 ? "here" : "there";
            ASSERT_TRUE(writer->insert(process));
        }
        for (std::int64_t number = 0; number < kSteps; ++number)
            for (std::int64_t rank = 0; rank < kRanks; ++rank) writeStep(*writer, rank, number);
        ASSERT_TRUE(writer->commit());
        window_.resize(1400, 900);
        window_.show();
        ASSERT_TRUE(QTest::qWaitForWindowExposed(&window_));
        window_.workspace().selectPlanners({QStringLiteral("none")});
        window_.open(QString::fromStdString(path), {});
        ASSERT_TRUE(
            QTest::qWaitFor([&] { return window_.workspace().document() != nullptr; }, kPatience));
        auto* dock = window_.findChild<QDockWidget*>(QStringLiteral("ranks"));
        ASSERT_NE(dock, nullptr);
        dock->show();
        dock->raise();
        ASSERT_TRUE(QTest::qWaitFor([&] { return panel().model().rowCount() == kRanks; }, 30000));
    }
    RanksPanel& panel() { return window_.panel<RanksPanel>(); }
    QString cell(int row, RankModel::Column column) {
        return panel().model().index(row, column).data().toString();
    }
    std::int64_t step() { return window_.workspace().document()->step; }

    QTemporaryDir folder_;
    MainWindow window_;
};

TEST_F(Ranks, AreSideBySideAndTheOneThatDecidesIsNamed) {
    const QAbstractItemModelTester tester(panel().table().shown().sourceModel());
    EXPECT_TRUE(panel().applies());
    EXPECT_EQ(cell(0, RankModel::Rank), QLatin1String("0"));
    EXPECT_TRUE(cell(2, RankModel::Rank).contains(QLatin1String("decides")));
    EXPECT_EQ(cell(2, RankModel::Host), QLatin1String("there"));
    EXPECT_EQ(cell(2, RankModel::Room), QLatin1String("0.00 kB"));
    EXPECT_EQ(cell(0, RankModel::Waiting), QLatin1String("4.000 ms"))
        << "2 ms of ops, 6 of the last";
    EXPECT_EQ(cell(2, RankModel::Waiting), QLatin1String("0.000 ms"));
}

TEST_F(Ranks, AClickOpensOne) {
    EXPECT_EQ(step(), 5) << "the last";
    const QModelIndex first = panel().table().shown().index(0, 0);
    QTest::mouseClick(panel().table().viewport(), Qt::LeftButton, {},
                      panel().table().visualRect(first).center());
    ASSERT_TRUE(QTest::qWaitFor([&] { return step() == 3; }, kPatience)) << step();
    EXPECT_EQ(panel().model().rowCount(), kRanks) << "nothing is read again";
    EXPECT_EQ(panel().table().currentIndex().row(), 0);
    for (const StepSummary& each : window_.workspace().document()->overview)
        EXPECT_EQ(each.step % kRanks, 0) << "the recording shows one rank's steps";
}

}  // namespace
}  // namespace hw::viewer

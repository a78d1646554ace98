// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/models/process_model.h"

#include <gtest/gtest.h>

#include <QAbstractItemModelTester>

#include "viewer/models/tool.h"

namespace hw::viewer {
namespace {

TrainingProcess process(qint64 pid, const char* command, const char* why = "") {
    TrainingProcess made;
    made.pid = pid, made.command = QString::fromLatin1(command);
    made.attachable = *why == '\0', made.why = QString::fromLatin1(why);
    return made;
}

TEST(ProcessModel, RowsComeAndGoInPlace) {
    ProcessModel model;
    QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::Fatal);
    model.setProcesses({process(10, "python3 a.py"), process(30, "python3 b.py", "not yours")});
    const QPersistentModelIndex second = model.index(1, ProcessModel::State);
    EXPECT_EQ(second.data().toString(), QStringLiteral("not yours"));

    model.setProcesses({process(20, "python3 c.py"), process(30, "python3 b.py")});
    EXPECT_EQ(model.rowCount(), 2);
    EXPECT_EQ(model.rowOf(10), -1);
    EXPECT_EQ(model.rowOf(20), 0);
    ASSERT_TRUE(second.isValid()) << "a selection stays on its process";
    EXPECT_EQ(second.row(), 1);
    EXPECT_EQ(second.data().toString(), QStringLiteral("can be recorded"));

    model.setProcesses({});
    EXPECT_EQ(model.rowCount(), 0);
    EXPECT_FALSE(second.isValid());
}

TEST(ProcessModel, TellsProcessesOfOneCommandApart) {
    TrainingProcess one = process(10, "python train.py"), other = one;
    one.folder = QStringLiteral("/home/a"), one.residentBytes = 2'100'000'000, one.seconds = 7200;
    other.pid = 11, other.folder = QStringLiteral("/home/b");
    ProcessModel model;
    model.setProcesses({one, other});
    EXPECT_EQ(model.index(0, ProcessModel::Folder).data().toString(), QStringLiteral("/home/a"));
    EXPECT_EQ(model.index(0, ProcessModel::Memory).data().toString(), QStringLiteral("2.10 GB"));
    EXPECT_EQ(model.index(0, ProcessModel::Age).data().toString(), QStringLiteral("2 h"));
    EXPECT_EQ(model.rowOf(QStringLiteral("python train.py")), -1) << "which of the two is meant?";
    model.setProcesses({other});
    EXPECT_EQ(model.rowOf(QStringLiteral("python train.py")), 0);
}

TEST(ProcessModel, SaysWhichProcessLeavesWhileItIsThere) {
    ProcessModel model;
    model.setProcesses({process(10, "a"), process(20, "b")});
    std::vector<std::pair<qint64, int>> left;
    QObject::connect(&model, &ProcessModel::leaves,
                     [&](qint64 pid) { left.emplace_back(pid, model.rowOf(pid)); });
    model.setProcesses({process(20, "b")});
    EXPECT_EQ(left, (std::vector<std::pair<qint64, int>>{{10, 0}}));
}

TEST(Tool, TheLastErrorAndItsHintCount) {
    const ToolError error = toolError(QStringLiteral(
        "highwater: attached\nhighwater: error: first\nhint: old\nhighwater: error: second\n"));
    EXPECT_EQ(error.what, QStringLiteral("second"));
    EXPECT_TRUE(error.hint.isEmpty()) << "another error's hint is none";
}

TEST(Tool, ProgressIsItsLastWholeLineThatIsNoError) {
    EXPECT_EQ(
        toolProgress(QStringLiteral("highwater: building\nnote: a\nhighwater: error: b\nhighw")),
        QStringLiteral("building"));
    EXPECT_TRUE(toolProgress(QStringLiteral("highwater: not yet at an end")).isEmpty());
}

}  // namespace
}  // namespace hw::viewer

// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/models/process_model.h"

#include <gtest/gtest.h>

#include <QAbstractItemModelTester>

#include "viewer/models/tool.h"

namespace hw::viewer {
namespace {

TrainingProcess process(qint64 pid, const char* command, const char* why = "") {
    return {pid, QString::fromLatin1(command), *why == '\0', QString::fromLatin1(why)};
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

// SPDX-License-Identifier: GPL-3.0-or-later
// What the window reads of a training under a plan while it runs.
#include "viewer/models/live_progress.h"

#include <gtest/gtest.h>

#include <QFile>
#include <QTemporaryDir>

#include "viewer/models/growing_file.h"
#include "viewer/models/tool.h"

namespace hw::viewer {
namespace {

using core::Bytes;
using Told = LiveProgress::Told;

class Growing : public ::testing::Test {
protected:
    void write(const QByteArray& text) {
        QFile file(path_);
        ASSERT_TRUE(file.open(QIODevice::WriteOnly | QIODevice::Append));
        file.write(text);
    }
    QTemporaryDir folder_;
    QString path_ = folder_.filePath(QStringLiteral("told"));
    GrowingFile file_{path_};
};

TEST_F(Growing, ATornLineWaitsForItsEnd) {
    EXPECT_TRUE(file_.newLines().isEmpty()) << "there is no such file yet";
    write("one\ntw");
    EXPECT_EQ(file_.newLines(), QByteArrayList{"one"});
    EXPECT_TRUE(file_.newLines().isEmpty());
    write("o");
    EXPECT_TRUE(file_.newLines().isEmpty());
    write("\n\nthree\nfour\nfi");
    EXPECT_EQ(file_.newLines(), (QByteArrayList{"two", "three", "four"}));
    write("ve\r 7 of 9\r");
    EXPECT_EQ(file_.newLines(), (QByteArrayList{"five", " 7 of 9"})) << "as progress bars write";
}

TEST_F(Growing, WhoAppendsMayGoOnAfterItWasRead) {
    const QByteArray line(10'000, 'x');
    for (int i = 0; i < 20; ++i) {
        write(line + '\n');
        ASSERT_EQ(file_.newLines(), QByteArrayList{line}) << i;
    }
    EXPECT_EQ(QFile(path_).size(), 20 * 10'001) << "whoever has it open keeps its place";
}

QByteArray step(int number, const char* mode, qint64 peak, const QByteArray& rest = {}) {
    return "{\"event\":\"step\",\"rank\":0,\"step\":" + QByteArray::number(number) +
           ",\"mode\":\"" + mode +
           "\",\"begin_ns\":1,\"end_ns\":2,\"peak_bytes\":" + QByteArray::number(peak) +
           ",\"recomputed_ops\":3,\"restored_bytes\":4" +
           (rest.isEmpty() ? QByteArray(",\"divergence\":null") : rest) + "}";
}

TEST(LiveProgress, CountsPlannedStepsAndKeepsTheirPeaks) {
    LiveProgress progress;
    EXPECT_EQ(progress.take(step(0, "none", 900)), Told::Step);
    EXPECT_FALSE(progress.underPlan());
    EXPECT_EQ(progress.highestPeak(), Bytes(0)) << "an unplanned step says nothing of the plan";
    progress.take(step(1, "plan", 500));
    progress.take(step(2, "plan", 400));
    EXPECT_TRUE(progress.underPlan());
    EXPECT_EQ(progress.steps(), 3);
    EXPECT_EQ(progress.planned(), 2);
    EXPECT_EQ(progress.lastPeak(), Bytes(400));
    EXPECT_EQ(progress.highestPeak(), Bytes(500));
    EXPECT_EQ(progress.diverged(), 0);
    EXPECT_FALSE(progress.divergence());
}

TEST(LiveProgress, TheLastStepThatLeftThePlanIsTold) {
    LiveProgress progress;
    const auto left = [](int op, const char* found) {
        return ",\"divergence\":{\"op\":" + QByteArray::number(op) +
               ",\"expected\":\"aten::relu\",\"found\":\"" + found + "\"}";
    };
    progress.take(step(4, "none", 1, left(12, "aten::gelu")));
    progress.take(step(5, "plan", 1));
    progress.take(step(6, "none", 1, left(7, "aten::mul")));
    EXPECT_EQ(progress.diverged(), 2);
    ASSERT_TRUE(progress.divergence());
    EXPECT_EQ(progress.divergence()->step, 6);
    EXPECT_EQ(progress.divergence()->op, 7);
    EXPECT_EQ(progress.divergence()->expected, QStringLiteral("aten::relu"));
    EXPECT_EQ(progress.divergence()->found, QStringLiteral("aten::mul"));
}

TEST(LiveProgress, TheNewestCurveStaysUntilAnotherComes) {
    LiveProgress progress;
    progress.take(step(0, "plan", 30, ",\"divergence\":null,\"curve\":[10,30,20]"));
    progress.take(step(1, "plan", 31));
    EXPECT_EQ(progress.curve(), (std::vector<Bytes>{Bytes(10), Bytes(30), Bytes(20)}));
    progress.take(step(2, "plan", 32, ",\"divergence\":null,\"curve\":[11,32]"));
    EXPECT_EQ(progress.curve(), (std::vector<Bytes>{Bytes(11), Bytes(32)}));
}

TEST(LiveProgress, WhatIsNoEventOfTheFirstRankSaysNothing) {
    LiveProgress progress;
    QByteArray other = step(0, "plan", 70);
    other.replace("\"rank\":0", "\"rank\":1");
    progress.take(step(0, "plan", 50));
    EXPECT_EQ(progress.take(other), Told::Nothing);
    for (const char* line : {"", "{", "[1,2]", "{\"event\":\"weather\"}", "{\"event\":\"step\"",
                             "highwater: attached"})
        EXPECT_EQ(progress.take(line), Told::Nothing) << line;
    EXPECT_EQ(progress.steps(), 1);
    EXPECT_EQ(progress.highestPeak(), Bytes(50));
}

QByteArray timed(int number, const char* mode, int ms, int recomputing, int runtime) {
    const auto count = [](int milliseconds) {
        return QByteArray::number(qint64(milliseconds) * 1'000'000);
    };
    return "{\"event\":\"step\",\"rank\":0,\"step\":" + QByteArray::number(number) +
           ",\"mode\":\"" + mode + "\",\"begin_ns\":" + count(1000) +
           ",\"end_ns\":" + count(1000 + ms) +
           ",\"peak_bytes\":" + QByteArray::number(700 + number) +
           ",\"recomputed_ops\":3,\"restored_bytes\":0,\"evictions\":5,\"recomputed_ns\":" +
           count(recomputing) + ",\"runtime_ns\":" + count(runtime) + ",\"divergence\":null}";
}

TEST(LiveProgress, StepsWithinABudgetAreCountedByWhatDecided) {
    LiveProgress progress;
    EXPECT_TRUE(progress.mode().isEmpty());
    for (const char* mode : {"dtr", "dtr", "mimose", "plan", "dtr", "oracle"})
        progress.take(timed(progress.steps(), mode, 10, 0, 0));
    QStringList told;
    for (const LiveMode& mode : progress.modes())
        told << QStringLiteral("%1 %2").arg(mode.steps).arg(liveModeText(mode.name));
    EXPECT_EQ(told, (QStringList{QStringLiteral("3 DTR"), QStringLiteral("1 Mimose"),
                                 QStringLiteral("1 plan"), QStringLiteral("1 oracle")}));
    EXPECT_EQ(progress.mode(), QStringLiteral("oracle"))
        << "a word that is not known is told as it is";
    EXPECT_EQ(progress.highestOfAll(), Bytes(705));
    EXPECT_EQ(progress.highestPeak(), Bytes(703)) << "of the planned one";
    EXPECT_EQ(progress.evictions(), 30);
    EXPECT_EQ(progress.recomputedOps(), 18);
    ASSERT_EQ(progress.history().size(), 6U);
    EXPECT_EQ(progress.modeOf(progress.history()[2]), QStringLiteral("mimose"));
    EXPECT_EQ(progress.history()[2].time, core::Nanoseconds(10'000'000));
}

TEST(LiveProgress, OverheadComparesWithStepsLessWhatTheBudgetTook) {
    LiveProgress progress;
    EXPECT_FALSE(progress.overhead());
    progress.take(timed(0, "dtr", 150, 40, 10));
    ASSERT_TRUE(progress.overhead());
    EXPECT_DOUBLE_EQ(*progress.overhead(), 1.5);
    progress.take(timed(1, "plan", 120, 15, 1));
    EXPECT_DOUBLE_EQ(*progress.overhead(), 1.2) << "the plan's steps stand for those with";
    progress.take(timed(2, "none", 80, 0, 0));
    EXPECT_DOUBLE_EQ(*progress.overhead(), 1.5) << "and unplanned ones for those without";
    progress.take("{\"event\":\"ended\",\"report\":{\"measured_overhead\":1.25}}");
    EXPECT_DOUBLE_EQ(*progress.overhead(), 1.25) << "the report has the last word";
    progress.take("{\"event\":\"ended\",\"report\":{\"measured_overhead\":null}}");
    EXPECT_FALSE(progress.overhead());
}

TEST(LiveProgress, AProgramThatGoesOnHasNoStatus) {
    LiveProgress running, ended;
    EXPECT_FALSE(running.end());
    EXPECT_EQ(running.take("{\"event\":\"ended\",\"report\":{\"exit_status\":null}}"), Told::End);
    ASSERT_TRUE(running.end());
    EXPECT_FALSE(running.end()->exitStatus);
    ended.take("{\"event\":\"ended\",\"report\":{\"exit_status\":3}}");
    EXPECT_EQ(ended.end()->exitStatus, 3);
    EXPECT_EQ(ended.end()->verified, Bytes(0));
    ended.take("{\"event\":\"ended\",\"report\":{\"verified_bytes\":700}}");
    EXPECT_EQ(ended.end()->verified, Bytes(700));
}

TEST(Tool, AProgramIsNamedByItsScript) {
    EXPECT_EQ(programName(QStringLiteral("/usr/bin/python3 -u jobs/train.py --steps 5")),
              QStringLiteral("train.py"));
    EXPECT_EQ(programName(QStringLiteral("/opt/bin/torchrun job")), QStringLiteral("torchrun"));
    EXPECT_EQ(programName({}), QStringLiteral("run"));
}

}  // namespace
}  // namespace hw::viewer

// SPDX-License-Identifier: GPL-3.0-or-later
// Training under the plan that is drawn: a process that runs, a program that is started, refusals.
#include <gtest/gtest.h>

#include <QLabel>
#include <QLineEdit>
#include <QMessageBox>
#include <QPushButton>
#include <QRegularExpression>
#include <QTableView>
#include <algorithm>

#include "core/import/import.h"
#include "tests/gui/patience.h"
#include "tests/gui/training.h"
#include "viewer/panels/compare_panel.h"
#include "viewer/panels/main_window.h"
#include "viewer/panels/timeline_panel.h"

namespace hw::viewer {
namespace {

std::size_t runsIn(const QString& path) {
    const auto session = core::openAny(path.toStdString());
    if (!session) return 0;
    const auto runs = session->runs();
    return runs ? runs->size() : 0;
}

class Live : public samples::WithTraining<> {
protected:
    static void SetUpTestSuite() {
        WithTraining::SetUpTestSuite();
        if (!training_) return;
        QProcess recorder;
        session_ = training_->folder() + QStringLiteral("/run.hws");
        recorder.start(toolProgram(), {QStringLiteral("attach"), QString::number(training_->pid()),
                                       QStringLiteral("-o"), session_, QStringLiteral("--steps"),
                                       QStringLiteral("3")});
        if (!recorder.waitForFinished(kPatience) || recorder.exitCode() != 0) training_.reset();
    }
    void SetUp() override {
        WithTraining::SetUp();
        if (!training_) return;
        window_.resize(1440, 900);
        window_.show();
        ASSERT_TRUE(QTest::qWaitForWindowExposed(&window_));
    }
    /// Draws the plan of a planner at a share of the peak.
    void plan(const QString& session, double ratio) {
        workspace_.selectPlanners({QStringLiteral("highwater")});
        ASSERT_TRUE(workspace_.loader().openNow(session.toStdString(), {}, std::nullopt));
        workspace_.placeBudget(ratio);
        ASSERT_TRUE(workspace_.planNow());
        for (const PlanRow& row : workspace_.plans().rows(workspace_.budget()))
            if (row.planner == QLatin1String("highwater") && row.plan && row.plan->ok())
                workspace_.choose(row.plan);
        ASSERT_TRUE(workspace_.active().plan());
        ASSERT_GT(workspace_.active().plan()->recomputedOps, 0);
    }
    void openDialog() {
        QTest::keyClick(&window_, Qt::Key_T, Qt::ControlModifier);
        ASSERT_TRUE(dialog().isVisible());
    }
    void apply() {
        ASSERT_NO_FATAL_FAILURE(openDialog());
        ASSERT_TRUE(QTest::qWaitFor(
            [&] { return dialog().processes().rowOf(training_->pid()) >= 0; }, kPatience));
        dialog().findChild<QTableView*>()->selectRow(dialog().processes().rowOf(training_->pid()));
        QTest::mouseClick(dialog().findChild<QPushButton*>(QStringLiteral("apply")),
                          Qt::LeftButton);
    }
    void waitForPlannedSteps(int steps) {
        ASSERT_TRUE(QTest::qWaitFor(
            [&] { return run().progress().planned() >= steps || !problem().isEmpty(); },
            kPatience));
        ASSERT_GE(run().progress().planned(), steps) << problem().toStdString();
    }
    void stop() {
        QTest::mouseClick(window_.findChild<QPushButton*>(QStringLiteral("liveButton")),
                          Qt::LeftButton);
        ASSERT_TRUE(QTest::qWaitFor([&] { return !run().busy(); }, kPatience));
    }
    bool legendSaysLive() {
        const auto& items = window_.panel<TimelinePanel>().legend().items();
        return std::any_of(items.begin(), items.end(), [](const Legend::Item& item) {
            return item.name == QLatin1String("live");
        });
    }
    /// Of the row of Compare for our planner.
    QString measuredPeak() {
        const CompareModel& model = window_.panel<ComparePanel>().model();
        for (int row = 0; row < model.rowCount(); ++row)
            if (const PlanPointer plan = model.planAt(row); plan && plan->measuredPeak)
                return model.index(row, CompareModel::MeasuredPeak).data().toString();
        return {};
    }
    TrainDialog& dialog() { return window_.trainDialog(); }
    LiveRun& run() { return window_.liveRun(); }
    QString problem() { return samples::shownText(dialog(), "trainingProblem"); }
    QString barText() { return samples::shownText(window_, "liveText"); }

    static inline QString session_;  // of the training
    MainWindow window_;
    Workspace& workspace_ = window_.workspace();
};

TEST_F(Live, APlanIsBroughtToARunningTrainingAndTakenOutAgain) {
    ASSERT_NO_FATAL_FAILURE(plan(session_, 0.7));
    const SizeUnit size = workspace_.document()->size;
    const core::Bytes predicted = workspace_.active().plan()->peak;
    ASSERT_NO_FATAL_FAILURE(apply());
    const QString words = dialog().findChild<QLabel*>(QStringLiteral("headline"))->text();
    EXPECT_TRUE(words.contains(QStringLiteral("highwater"))) << words.toStdString();
    EXPECT_TRUE(words.contains(size.text(workspace_.budget()))) << words.toStdString();
    ASSERT_NO_FATAL_FAILURE(waitForPlannedSteps(3));
    EXPECT_FALSE(dialog().isVisible());
    EXPECT_TRUE(QTest::qWaitFor(
        [&] { return barText().contains(QStringLiteral("steps under the plan · peak ")); },
        kPatience))
        << barText().toStdString();

    const TimelinePlot& plot = window_.panel<TimelinePanel>().plot();
    ASSERT_TRUE(QTest::qWaitFor([&] { return plot.showsLive(); }, kPatience));
    EXPECT_TRUE(legendSaysLive());
    EXPECT_GT(plot.highestLive(), 0);
    EXPECT_LE(plot.highestLive(), size.value(run().progress().highestPeak()));
    EXPECT_LT(run().progress().highestPeak(), workspace_.document()->peak());

    ASSERT_TRUE(measuredPeak().isEmpty());
    ASSERT_NO_FATAL_FAILURE(stop());
    EXPECT_TRUE(training_->goesOn());
    ASSERT_TRUE(QTest::qWaitFor([&] { return !measuredPeak().isEmpty(); }, kPatience));
    EXPECT_EQ(measuredPeak(), size.text(run().progress().highestPeak()));
    EXPECT_FALSE(plot.showsLive());
    EXPECT_FALSE(legendSaysLive());
    EXPECT_TRUE(barText().contains(size.text(predicted))) << barText().toStdString();
    QTest::mouseClick(window_.findChild<QPushButton*>(QStringLiteral("liveButton")),
                      Qt::LeftButton);
    EXPECT_TRUE(barText().isEmpty());
}

TEST_F(Live, AProgramIsStartedUnderThePlanAndGoesOnWithoutIt) {
    ASSERT_NO_FATAL_FAILURE(plan(session_, 0.75));
    QTemporaryDir folder;
    QByteArray text(samples::kTraining);
    text.replace("import time", "import os, time");
    text.replace("    print(step, flush=True)\n",
                 "    open('DIR/steps', 'a').write('x')\n"
                 "    if os.path.exists('DIR/enough'): break\n");
    text.replace("model(torch.randn(1024, 64)).pow(2)", "loss(model(torch.randn(1024, 64)), step)");
    text.replace("for step in",
                 "loss = lambda y, step: y.pow(2) if step % 4 else y.abs()\nfor step in");
    text.append("open('DIR/done', 'w').close()\n");
    text.replace("DIR", folder.path().toUtf8());
    QFile script(folder.filePath(QStringLiteral("mine.py")));
    ASSERT_TRUE(script.open(QIODevice::WriteOnly));
    script.write(text);
    script.close();

    ASSERT_NO_FATAL_FAILURE(openDialog());
    auto* command = dialog().findChild<QLineEdit*>(QStringLiteral("command"));
    EXPECT_TRUE(command->text().contains(training_->folder() + QStringLiteral("/train.py")))
        << "what was recorded: " << command->text().toStdString();
    command->selectAll();
    QTest::keyClicks(command, QStringLiteral("/usr/bin/python3 ") + script.fileName());
    QTest::mouseClick(dialog().findChild<QPushButton*>(QStringLiteral("start")), Qt::LeftButton);
    ASSERT_NO_FATAL_FAILURE(waitForPlannedSteps(2));
    EXPECT_TRUE(barText().startsWith(QStringLiteral("mine.py · "))) << barText().toStdString();

    // Now and then its loss is another.
    ASSERT_TRUE(QTest::qWaitFor([&] { return run().progress().diverged() >= 2; }, kPatience));
    EXPECT_TRUE(QTest::qWaitFor(
        [&] { return barText().contains(QStringLiteral(" left it · peak ")); }, kPatience))
        << barText().toStdString();
    const QString tip = window_.findChild<QWidget*>(QStringLiteral("liveBar"))->toolTip();
    EXPECT_TRUE(tip.contains(QStringLiteral("expected aten::pow"))) << tip.toStdString();
    EXPECT_TRUE(tip.contains(QStringLiteral("came aten::abs"))) << tip.toStdString();

    ASSERT_NO_FATAL_FAILURE(stop());
    const auto steps = [&] { return QFile(folder.filePath(QStringLiteral("steps"))).size(); };
    const qint64 before = steps();
    EXPECT_TRUE(QTest::qWaitFor([&] { return steps() > before + 2; }, kPatience));
    ASSERT_TRUE(QTest::qWaitFor([&] { return !measuredPeak().isEmpty(); }, kPatience));
    QFile enough(folder.filePath(QStringLiteral("enough")));
    ASSERT_TRUE(enough.open(QIODevice::WriteOnly));
    EXPECT_TRUE(QTest::qWaitFor(
        [&] { return QFile::exists(folder.filePath(QStringLiteral("done"))); }, kPatience));
}

TEST_F(Live, ARefusalSaysWhyAndTheDialogStays) {
    ASSERT_NO_FATAL_FAILURE(plan(session_, 0.7));
    Recorder first;
    first.attach(training_->pid(), QStringLiteral("first"),
                 training_->folder() + QStringLiteral("/first.hws"), 0);
    ASSERT_TRUE(
        QTest::qWaitFor([&] { return first.state() == Recorder::State::Recording; }, kPatience));
    ASSERT_NO_FATAL_FAILURE(apply());
    ASSERT_TRUE(QTest::qWaitFor([&] { return !problem().isEmpty(); }, kPatience));
    EXPECT_TRUE(problem().contains(QStringLiteral("is being recorded already")))
        << problem().toStdString();
    EXPECT_TRUE(problem().contains(QStringLiteral("highwater detach %1").arg(training_->pid())));
    EXPECT_TRUE(dialog().isVisible()) << "it stays, for another choice";
    EXPECT_FALSE(run().busy());
    EXPECT_TRUE(barText().isEmpty());
    first.stop();
    ASSERT_TRUE(QTest::qWaitFor([&] { return !first.busy(); }, kPatience));
    EXPECT_TRUE(training_->goesOn());
}

TEST_F(Live, AProgramThatFailsSaysWhy) {
    ASSERT_NO_FATAL_FAILURE(plan(session_, 0.7));
    ASSERT_NO_FATAL_FAILURE(openDialog());
    auto* command = dialog().findChild<QLineEdit*>(QStringLiteral("command"));
    command->selectAll();
    QTest::keyClicks(command, QStringLiteral("/usr/bin/python3 /nowhere/mine.py"));
    QTest::mouseClick(dialog().findChild<QPushButton*>(QStringLiteral("start")), Qt::LeftButton);
    const auto message = [&] { return window_.findChild<QMessageBox*>(); };
    ASSERT_TRUE(QTest::qWaitFor([&] { return message() != nullptr; }, kPatience));
    EXPECT_EQ(message()->text(), QStringLiteral("mine.py ended with status 2"));
    EXPECT_TRUE(message()->informativeText().contains(QStringLiteral("can't open file")))
        << message()->informativeText().toStdString();
    EXPECT_FALSE(run().busy());
    EXPECT_TRUE(barText().isEmpty());
}

TEST_F(Live, StepsOfAnotherProgramGoUnplanned) {
    const QString copy = training_->folder() + QStringLiteral("/other.hws");
    ASSERT_TRUE(QFile::copy(QStringLiteral(SAMPLE_SESSION), copy));
    const std::size_t before = runsIn(copy);
    ASSERT_NO_FATAL_FAILURE(plan(copy, 0.7));
    ASSERT_NO_FATAL_FAILURE(apply());
    ASSERT_TRUE(QTest::qWaitFor(
        [&] { return run().progress().steps() >= 2 || !problem().isEmpty(); }, kPatience));
    ASSERT_TRUE(problem().isEmpty()) << problem().toStdString();
    static const QRegularExpression none(QStringLiteral("none of \\d+ steps under the plan"));
    EXPECT_TRUE(QTest::qWaitFor([&] { return none.match(barText()).hasMatch(); }, kPatience))
        << barText().toStdString();
    EXPECT_FALSE(window_.panel<TimelinePanel>().plot().showsLive());
    ASSERT_NO_FATAL_FAILURE(stop());
    EXPECT_TRUE(training_->goesOn());
    EXPECT_TRUE(barText().contains(QStringLiteral("without a step under the plan")))
        << barText().toStdString();
    EXPECT_EQ(runsIn(copy), before) << "nothing was measured of the plan";
}

TEST_F(Live, TheWindowGoesAndTheTrainingStays) {
    {
        MainWindow other;
        other.workspace().selectPlanners({QStringLiteral("highwater")});
        ASSERT_TRUE(other.workspace().loader().openNow(session_.toStdString(), {}, std::nullopt));
        other.workspace().placeBudget(0.7);
        ASSERT_TRUE(other.workspace().planNow());
        ASSERT_TRUE(other.workspace().active().plan());
        const Document& document = *other.workspace().document();
        other.liveRun().apply({session_, document.step, other.workspace().active().plan()},
                              training_->pid(), QStringLiteral("train.py"));
        ASSERT_TRUE(QTest::qWaitFor(
            [&] { return other.liveRun().progress().planned() >= 1 || !other.liveRun().busy(); },
            kPatience));
        ASSERT_GE(other.liveRun().progress().planned(), 1);
    }
    EXPECT_TRUE(training_->goesOn());
    // Nothing holds it any more, and the plan's row was still written.
    ASSERT_NO_FATAL_FAILURE(plan(session_, 0.7));
    EXPECT_FALSE(measuredPeak().isEmpty());
    ASSERT_NO_FATAL_FAILURE(apply());
    ASSERT_NO_FATAL_FAILURE(waitForPlannedSteps(1));
    ASSERT_NO_FATAL_FAILURE(stop());
}

}  // namespace
}  // namespace hw::viewer

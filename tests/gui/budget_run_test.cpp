// SPDX-License-Identifier: GPL-3.0-or-later
// Training within a budget from the Record dialog: without a session, beside one, and too little.
#include <gtest/gtest.h>

#include <QCheckBox>
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QMessageBox>
#include <QProcess>
#include <QPushButton>
#include <QTableView>
#include <algorithm>

#include "tests/gui/patience.h"
#include "tests/gui/training.h"
#include "viewer/panels/main_window.h"
#include "viewer/panels/timeline_panel.h"

namespace hw::viewer {
namespace {

constexpr const char* kAgainAndAgain = "range(1000000)";

class BudgetRun : public ::testing::Test {
protected:
    static void SetUpTestSuite() { missing_ = samples::missingForTraining(); }
    void SetUp() override {
        if (!missing_.isEmpty()) GTEST_SKIP() << missing_.toStdString();
        window_.resize(1440, 900);
        window_.show();
        ASSERT_TRUE(QTest::qWaitForWindowExposed(&window_));
    }
    /// A program that trains so many steps, "range(10)", or until it is told that this is enough.
    void write(const char* steps) {
        QByteArray text(samples::kTraining);
        text.replace("import time", "import os, time");
        text.replace(kAgainAndAgain, steps);
        text.replace("    print(step, flush=True)\n",
                     "    open('DIR/steps', 'a').write('x')\n"
                     "    if os.path.exists('DIR/enough'): break\n");
        text.append("open('DIR/done', 'w').close()\n");
        writeText(text);
    }
    void writeText(QByteArray text) {
        text.replace("DIR", folder_.path().toUtf8());
        QFile script(script_);
        ASSERT_TRUE(script.open(QIODevice::WriteOnly));
        script.write(text);
    }
    void enterCommand() {
        QTest::keyClick(&window_, Qt::Key_R, Qt::ControlModifier);
        ASSERT_TRUE(dialog().isVisible());
        auto* command = dialog().findChild<QLineEdit*>(QStringLiteral("command"));
        command->selectAll();
        QTest::keyClicks(command, QStringLiteral("/usr/bin/python3 ") + script_);
    }
    void fillIn(const QString& budget) {
        ASSERT_NO_FATAL_FAILURE(enterCommand());
        auto* within = dialog().findChild<QCheckBox*>(QStringLiteral("withinBudget"));
        if (!within->isChecked()) within->click();
        enterBudget(budget);
    }
    void enterBudget(const QString& budget) {
        auto* field = dialog().findChild<QLineEdit*>(QStringLiteral("budget"));
        ASSERT_TRUE(field->isEnabled());
        field->selectAll();
        QTest::keyClicks(field, budget);
        start();
    }
    void start() {
        QTest::mouseClick(dialog().findChild<QPushButton*>(QStringLiteral("start")),
                          Qt::LeftButton);
    }
    void waitForSteps(const char* mode, int steps) {
        const auto taken = [&] {
            for (const LiveMode& each : run().progress().modes())
                if (each.name == QLatin1String(mode)) return each.steps;
            return 0;
        };
        ASSERT_TRUE(QTest::qWaitFor([&] { return taken() >= steps || run().failure(); }, kPatience))
            << panel().note().toStdString();
        ASSERT_FALSE(run().failure()) << run().failure()->what.toStdString();
    }
    void pressBarButton() {
        QTest::mouseClick(window_.findChild<QPushButton*>(QStringLiteral("liveButton")),
                          Qt::LeftButton);
    }
    QString problem() { return samples::shownText(dialog(), "trainingProblem"); }
    QString barText() { return samples::shownText(window_, "liveText"); }
    bool legendSays(const QString& name) {
        const auto& items = panel().legend().items();
        return std::any_of(items.begin(), items.end(),
                           [&](const Legend::Item& item) { return item.name == name; });
    }
    qint64 stepsTaken() { return QFile(folder_.filePath(QStringLiteral("steps"))).size(); }
    AttachDialog& dialog() { return window_.attachDialog(); }
    LivePanel& panel() { return window_.livePanel(); }
    LiveRun& run() { return window_.liveRun(); }

    static inline QString missing_;
    QTemporaryDir folder_;
    QString script_ = folder_.filePath(QStringLiteral("mine.py"));
    MainWindow window_;
};

TEST_F(BudgetRun, AProgramIsTrainedWithoutASessionAndGoesOnWithoutItsBudget) {
    ASSERT_NO_FATAL_FAILURE(write(kAgainAndAgain));
    EXPECT_FALSE(dialog().findChild<QLineEdit*>(QStringLiteral("budget"))->isEnabled());
    ASSERT_NO_FATAL_FAILURE(fillIn(QStringLiteral("2.7 MB")));
    ASSERT_NO_FATAL_FAILURE(waitForSteps("dtr", 2));
    EXPECT_FALSE(dialog().isVisible());
    EXPECT_TRUE(panel().isVisible());
    EXPECT_FALSE(window_.emptyState().isVisible());
    EXPECT_EQ(window_.recorder().state(), Recorder::State::Idle);
    EXPECT_TRUE(legendSays(QStringLiteral("DTR")));
    EXPECT_TRUE(legendSays(QStringLiteral("budget")));

    ASSERT_NO_FATAL_FAILURE(waitForSteps("plan", 3));
    EXPECT_TRUE(QTest::qWaitFor(
        [&] { return barText().contains(QStringLiteral(" · plan at work · steps: ")); }, kPatience))
        << barText().toStdString();
    EXPECT_TRUE(barText().startsWith(QStringLiteral("mine.py · "))) << barText().toStdString();
    EXPECT_TRUE(barText().contains(QStringLiteral(" of 2.70 MB"))) << barText().toStdString();
    const FigureStrip& figures = panel().figures();
    EXPECT_EQ(figures.figure(0), QStringLiteral("plan"));
    EXPECT_TRUE(legendSays(QStringLiteral("plan")));
    const LiveProgress& progress = run().progress();
    EXPECT_EQ(panel().plot().stepsDrawn(), progress.steps());
    EXPECT_DOUBLE_EQ(panel().plot().budgetDrawn(), 2.7);
    EXPECT_DOUBLE_EQ(panel().plot().highestDrawn(),
                     static_cast<double>(progress.highestOfAll().count()) / 1e6);
    EXPECT_LE(progress.highestOfAll(), core::Bytes(2'700'000));
    EXPECT_GT(progress.evictions(), 0);
    EXPECT_EQ(figures.figure(3), QString::number(progress.evictions()));
    EXPECT_EQ(figures.figure(4), QString::number(progress.recomputedOps()));

    pressBarButton();
    ASSERT_TRUE(QTest::qWaitFor([&] { return !run().busy(); }, kPatience));
    EXPECT_FALSE(run().failure());
    EXPECT_EQ(figures.figure(0), QStringLiteral("ended"));
    const qint64 before = stepsTaken();
    EXPECT_TRUE(QTest::qWaitFor([&] { return stepsTaken() > before + 2; }, kPatience));
    EXPECT_TRUE(panel().isVisible()) << "what came of it stays until it was read";
    pressBarButton();
    EXPECT_FALSE(panel().isVisible());
    EXPECT_TRUE(window_.emptyState().isVisible());
    EXPECT_TRUE(barText().isEmpty());
    QFile enough(folder_.filePath(QStringLiteral("enough")));
    ASSERT_TRUE(enough.open(QIODevice::WriteOnly));
    EXPECT_TRUE(QTest::qWaitFor(
        [&] { return QFile::exists(folder_.filePath(QStringLiteral("done"))); }, kPatience));
}

TEST_F(BudgetRun, WhatIsNoSizeIsSaidInTheDialog) {
    ASSERT_NO_FATAL_FAILURE(write("range(3)"));
    for (const char* nonsense : {"lots", "-4GB", "20 Giga", "0", "1,5 GB"}) {
        ASSERT_NO_FATAL_FAILURE(fillIn(QLatin1String(nonsense)));
        EXPECT_TRUE(
            problem().contains(QStringLiteral("'%1' is no size").arg(QLatin1String(nonsense))))
            << problem().toStdString();
        EXPECT_TRUE(problem().contains(QStringLiteral("write 4GiB"))) << problem().toStdString();
        EXPECT_TRUE(dialog().isVisible());
        EXPECT_FALSE(run().busy());
        dialog().close();
    }
    EXPECT_EQ(stepsTaken(), 0);
    ASSERT_NO_FATAL_FAILURE(fillIn(QStringLiteral(" 1GiB ")));
    EXPECT_TRUE(problem().isEmpty()) << problem().toStdString();
    ASSERT_EQ(run().budget(), core::Bytes(std::int64_t(1) << 30));
    ASSERT_TRUE(QTest::qWaitFor([&] { return !run().busy(); }, kPatience));
    EXPECT_FALSE(run().failure());
    EXPECT_EQ(stepsTaken(), 3);
}

TEST_F(BudgetRun, ThePlannerIsChosenInTheDialog) {
    ASSERT_NO_FATAL_FAILURE(write("range(5)"));
    auto* planner = dialog().findChild<QComboBox*>(QStringLiteral("planner"));
    EXPECT_FALSE(planner->isEnabled());
    EXPECT_EQ(planner->currentText(), QStringLiteral("highwater"));
    EXPECT_EQ(planner->findText(QStringLiteral("none")), -1);
    planner->setCurrentText(QStringLiteral("dtr:lru"));
    ASSERT_NO_FATAL_FAILURE(fillIn(QStringLiteral("1GiB")));
    EXPECT_TRUE(planner->isEnabled());
    ASSERT_TRUE(run().terms());
    EXPECT_EQ(run().terms()->planner, QStringLiteral("dtr:lru"));
    ASSERT_TRUE(QTest::qWaitFor([&] { return !run().busy(); }, kPatience));
    EXPECT_FALSE(run().failure());
    EXPECT_EQ(stepsTaken(), 5);
    ASSERT_EQ(run().progress().modes().size(), 1U);
    EXPECT_EQ(run().progress().modes().front().name, QStringLiteral("dtr"));
}

TEST_F(BudgetRun, AProgramMayBeRescuedInstead) {
    ASSERT_NO_FATAL_FAILURE(write("range(5)"));
    ASSERT_NO_FATAL_FAILURE(enterCommand());
    auto* within = dialog().findChild<QCheckBox*>(QStringLiteral("withinBudget"));
    auto* rescue = dialog().findChild<QCheckBox*>(QStringLiteral("rescue"));
    within->click();
    rescue->click();
    EXPECT_FALSE(within->isChecked());
    EXPECT_FALSE(dialog().findChild<QLineEdit*>(QStringLiteral("budget"))->isEnabled());
    start();
    ASSERT_TRUE(run().terms());
    EXPECT_FALSE(run().budget());
    ASSERT_TRUE(QTest::qWaitFor([&] { return !run().busy(); }, kPatience));
    EXPECT_FALSE(run().failure());
    EXPECT_EQ(stepsTaken(), 5);
    EXPECT_TRUE(panel().isVisible());
    EXPECT_FALSE(legendSays(QStringLiteral("budget")));
    EXPECT_EQ(panel().figures().figure(0), QStringLiteral("ended"));
    EXPECT_EQ(panel().figures().figure(3), QStringLiteral("0"));
    EXPECT_EQ(panel().plot().stepsDrawn(), 5);
    EXPECT_DOUBLE_EQ(panel().plot().highestDrawn(),
                     static_cast<double>(run().progress().highestOfAll().count()) / 1e6);
    EXPECT_TRUE(barText().contains(QStringLiteral("peak "))) << barText().toStdString();
    pressBarButton();
}

TEST_F(BudgetRun, ARunningProgramIsKeptWithinABudget) {
    ASSERT_NO_FATAL_FAILURE(write(kAgainAndAgain));
    QProcess training;
    training.start(QStringLiteral("/usr/bin/python3"), {script_});
    ASSERT_TRUE(QTest::qWaitFor([&] { return stepsTaken() > 2; }, kPatience));
    ASSERT_NO_FATAL_FAILURE(enterCommand());
    dialog().findChild<QCheckBox*>(QStringLiteral("withinBudget"))->click();
    QTest::keyClicks(dialog().findChild<QLineEdit*>(QStringLiteral("budget")),
                     QStringLiteral("2.7 MB"));
    ASSERT_TRUE(QTest::qWaitFor(
        [&] { return dialog().processes().rowOf(training.processId()) >= 0; }, kPatience));
    dialog().findChild<QTableView*>()->selectRow(dialog().processes().rowOf(training.processId()));
    auto* apply = dialog().findChild<QPushButton*>(QStringLiteral("attach"));
    EXPECT_EQ(apply->text(), QStringLiteral("Apply"));
    QTest::mouseClick(apply, Qt::LeftButton);
    ASSERT_NO_FATAL_FAILURE(waitForSteps("dtr", 2));
    EXPECT_FALSE(dialog().isVisible());
    EXPECT_LE(run().progress().highestOfAll(), core::Bytes(2'700'000));
    pressBarButton();
    ASSERT_TRUE(QTest::qWaitFor([&] { return !run().busy(); }, kPatience));
    EXPECT_FALSE(run().failure());
    const qint64 before = stepsTaken();
    EXPECT_TRUE(QTest::qWaitFor([&] { return stepsTaken() > before + 2; }, kPatience));
    QFile enough(folder_.filePath(QStringLiteral("enough")));
    ASSERT_TRUE(enough.open(QIODevice::WriteOnly));
    EXPECT_TRUE(
        QTest::qWaitFor([&] { return training.state() == QProcess::NotRunning; }, kPatience));
    EXPECT_EQ(training.exitCode(), 0);
}

TEST_F(BudgetRun, ABudgetThatIsTooSmallIsToldInTheToolsWords) {
    QByteArray text(samples::kTraining);
    text.replace("torch.randn(1024, 64)", "torch.randn(64 * (step + 1) ** 3, 64)");
    ASSERT_NO_FATAL_FAILURE(writeText(text));
    ASSERT_NO_FATAL_FAILURE(fillIn(QStringLiteral("2 MB")));
    ASSERT_TRUE(QTest::qWaitFor([&] { return run().failure().has_value(); }, kPatience));
    EXPECT_TRUE(panel().isVisible());
    const QString note = panel().note();
    EXPECT_TRUE(note.contains(QStringLiteral("did not get through within 2.00 MB: aten::")))
        << note.toStdString();
    EXPECT_TRUE(note.contains(QStringLiteral("give a larger --budget"))) << note.toStdString();
    EXPECT_TRUE(barText().contains(QStringLiteral("did not get through")))
        << barText().toStdString();
    EXPECT_EQ(window_.findChild<QMessageBox*>(), nullptr);
    EXPECT_GT(panel().plot().stepsDrawn(), 0) << "the steps before";
    pressBarButton();
    EXPECT_TRUE(window_.emptyState().isVisible());
}

TEST_F(BudgetRun, BesideASessionItIsATabOfTheTimeline) {
    window_.workspace().selectPlanners({QStringLiteral("none")});
    ASSERT_TRUE(window_.workspace().loader().openNow(SAMPLE_SESSION, {}, std::nullopt));
    const DocumentPointer document = window_.workspace().document();
    ASSERT_NO_FATAL_FAILURE(write(kAgainAndAgain));
    ASSERT_NO_FATAL_FAILURE(fillIn(QStringLiteral("2.7 MB")));
    ASSERT_NO_FATAL_FAILURE(waitForSteps("dtr", 1));
    const auto& timeline = window_.panel<TimelinePanel>();
    const auto seen = [&](const QWidget& widget) {
        return widget.isAncestorOf(window_.childAt(widget.mapTo(&window_, widget.rect().center())));
    };
    EXPECT_TRUE(QTest::qWaitFor([&] { return seen(panel()) && !seen(timeline); }, kPatience))
        << "one lies behind the other";

    QTest::keyClick(&window_, Qt::Key_T, Qt::ControlModifier);
    auto* message = window_.findChild<QMessageBox*>();
    ASSERT_NE(message, nullptr);
    EXPECT_EQ(message->text(), QStringLiteral("mine.py trains within a budget already"));
    message->close();

    QFile enough(folder_.filePath(QStringLiteral("enough")));
    ASSERT_TRUE(enough.open(QIODevice::WriteOnly));
    ASSERT_TRUE(QTest::qWaitFor([&] { return !run().busy(); }, kPatience));
    EXPECT_FALSE(run().failure());
    EXPECT_TRUE(run().progress().end());
    EXPECT_EQ(window_.workspace().document(), document);
    pressBarButton();
    EXPECT_FALSE(panel().isVisible());
    EXPECT_TRUE(QTest::qWaitFor([&] { return seen(timeline); }, kPatience));
}

}  // namespace
}  // namespace hw::viewer

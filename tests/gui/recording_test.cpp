// SPDX-License-Identifier: GPL-3.0-or-later
// Recording from the window: the list, refusals, and what is left when somebody is killed.
#include <gtest/gtest.h>
#include <signal.h>

#include <QCheckBox>
#include <QLabel>
#include <QLineEdit>
#include <QMessageBox>
#include <QPushButton>
#include <QTableView>

#include "tests/gui/patience.h"
#include "tests/gui/training.h"
#include "viewer/panels/main_window.h"
#include "viewer/panels/steps_panel.h"

namespace hw::viewer {
namespace {

class Recording : public samples::WithTraining<> {
protected:
    void SetUp() override {
        WithTraining::SetUp();
        if (!training_) return;
        window_.workspace().selectPlanners({QStringLiteral("none")});
        window_.show();
        ASSERT_TRUE(QTest::qWaitForWindowExposed(&window_));
    }
    /// Chooses the training in the dialog and presses "Attach and record".
    void attach() {
        QTest::keyClick(&window_, Qt::Key_R, Qt::ControlModifier);
        ASSERT_TRUE(dialog().isVisible());
        auto* folder = dialog().findChild<QLineEdit*>(QStringLiteral("folder"));
        folder->selectAll();
        QTest::keyClicks(folder, training_->folder());
        ASSERT_TRUE(QTest::qWaitFor(
            [&] { return dialog().processes().rowOf(training_->pid()) >= 0; }, kPatience));
        auto* table = dialog().findChild<QTableView*>(QStringLiteral("processes"));
        table->selectRow(dialog().processes().rowOf(training_->pid()));
        QTest::mouseClick(dialog().findChild<QPushButton*>(QStringLiteral("attach")),
                          Qt::LeftButton);
    }
    void recordSteps(int steps) {
        ASSERT_NO_FATAL_FAILURE(attach());
        ASSERT_TRUE(QTest::qWaitFor([&] { return window_.recorder().steps() >= steps; }, kPatience))
            << problem().toStdString();
        ASSERT_TRUE(QTest::qWaitFor(
            [&] { return window_.panel<StepsPanel>().plot().stepsDrawn() >= 1; }, kPatience));
    }
    AttachDialog& dialog() { return window_.attachDialog(); }
    QString problem() {
        return dialog().findChild<QLabel*>(QStringLiteral("trainingProblem"))->text();
    }
    QMessageBox* message() { return window_.findChild<QMessageBox*>(); }

    MainWindow window_;
};

TEST_F(Recording, ARefusalSaysWhyAndWhatToDo) {
    Recorder first;
    first.attach(training_->pid(), QStringLiteral("first"),
                 training_->folder() + QStringLiteral("/first.hws"), 0);
    ASSERT_TRUE(
        QTest::qWaitFor([&] { return first.state() == Recorder::State::Recording; }, kPatience));
    ASSERT_NO_FATAL_FAILURE(attach());
    ASSERT_TRUE(QTest::qWaitFor([&] { return !problem().isEmpty(); }, kPatience));
    EXPECT_TRUE(problem().contains(QStringLiteral("is being recorded already")));
    EXPECT_TRUE(problem().contains(QStringLiteral("highwater detach %1").arg(training_->pid())));
    EXPECT_TRUE(dialog().isVisible()) << "it stays, for another choice";
    EXPECT_EQ(window_.workspace().document(), nullptr);
    first.stop();
    ASSERT_TRUE(QTest::qWaitFor([&] { return !first.busy(); }, kPatience));
    EXPECT_TRUE(training_->running());
}

TEST_F(Recording, NoOtherProcessIsAimedAtWhenTheChosenOneEnds) {
    QTest::keyClick(&window_, Qt::Key_R, Qt::ControlModifier);
    const auto process = [](qint64 pid) {
        TrainingProcess made;
        made.pid = pid, made.command = QStringLiteral("python train.py"), made.attachable = true;
        return made;
    };
    auto* table = dialog().findChild<QTableView*>(QStringLiteral("processes"));
    auto* attach = dialog().findChild<QPushButton*>(QStringLiteral("attach"));
    auto* within = dialog().findChild<QCheckBox*>(QStringLiteral("withinBudget"));
    dialog().processes().setProcesses({process(1), process(2), process(3)});
    EXPECT_FALSE(attach->isEnabled()) << "none has been chosen";
    table->selectRow(1);
    within->setChecked(true);
    EXPECT_TRUE(attach->isEnabled());
    dialog().processes().setProcesses({process(1), process(3)});
    EXPECT_FALSE(table->currentIndex().isValid());
    EXPECT_FALSE(attach->isEnabled());

    table->selectRow(0);
    dialog().hide();
    dialog().show();
    EXPECT_FALSE(attach->isEnabled());
    EXPECT_FALSE(within->isChecked()) << "it was meant for another training";
}

TEST_F(Recording, AKilledRecorderLosesNoFinishedStep) {
    ASSERT_NO_FATAL_FAILURE(recordSteps(3));
    EXPECT_FALSE(dialog().isVisible());
    const auto* mark = window_.findChild<QLabel*>(QStringLiteral("recordingMark"));
    EXPECT_TRUE(mark->isVisible());
    ASSERT_EQ(::kill(static_cast<pid_t>(window_.recorder().processId()), SIGKILL), 0);
    ASSERT_TRUE(QTest::qWaitFor([&] { return message() != nullptr; }, kPatience));
    EXPECT_FALSE(mark->isVisible());
    const int steps = window_.recorder().steps();
    EXPECT_TRUE(message()->text().contains(QStringLiteral("ended unexpectedly")));
    EXPECT_TRUE(message()->informativeText().contains(QStringLiteral("all %1 steps").arg(steps)))
        << message()->informativeText().toStdString();
    ASSERT_TRUE(
        QTest::qWaitFor([&] { return !window_.workspace().loader().following(); }, kPatience));
    ASSERT_TRUE(
        QTest::qWaitFor([&] { return window_.workspace().document()->steps >= steps; }, kPatience));
    EXPECT_TRUE(QTest::qWaitFor([&] { return training_->running(); }, 1000));
}

TEST_F(Recording, TheTrainingIsKilledAndItsStepsStay) {
    ASSERT_NO_FATAL_FAILURE(recordSteps(3));
    training_->end();
    ASSERT_TRUE(QTest::qWaitFor([&] { return !window_.recorder().busy(); }, kPatience));
    const int steps = window_.recorder().steps();
    ASSERT_TRUE(QTest::qWaitFor(
        [&] { return !window_.workspace().loader().following() && window_.workspace().document(); },
        kPatience));
    ASSERT_TRUE(
        QTest::qWaitFor([&] { return window_.workspace().document()->steps == steps; }, kPatience));
    EXPECT_EQ(message(), nullptr) << message()->text().toStdString();
    EXPECT_EQ(window_.panel<StepsPanel>().plot().stepsDrawn(), steps);
}

}  // namespace
}  // namespace hw::viewer

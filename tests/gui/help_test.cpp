// SPDX-License-Identifier: GPL-3.0-or-later
// How the window explains itself, and the way back from what was tried.
#include <gtest/gtest.h>

#include <QMessageBox>
#include <QPointer>
#include <QPushButton>
#include <QStandardPaths>
#include <QTemporaryDir>
#include <QTest>

#include "viewer/panels/main_window.h"
#include "viewer/panels/timeline_panel.h"
#include "viewer/panels/whatif_panel.h"

// Of a static library: named once, outside any namespace, as runWindow() does.
static void initResources() {
    Q_INIT_RESOURCE(resources);
}
#include "tests/gui/patience.h"

namespace hw::viewer {
namespace {

class Help : public ::testing::Test {
protected:
    void SetUp() override {
        initResources();
        QStandardPaths::setTestModeEnabled(true);
        window_.workspace().selectPlanners({QStringLiteral("none"), QStringLiteral("dtr:eqclass")});
        window_.resize(1400, 900);
        window_.show();
        ASSERT_TRUE(QTest::qWaitForWindowExposed(&window_));
    }
    void openSession() {
        window_.open(QStringLiteral(SAMPLE_SESSION));
        ASSERT_TRUE(
            QTest::qWaitFor([&] { return window_.workspace().document() != nullptr; }, kPatience));
        ASSERT_TRUE(QTest::qWaitFor([&] { return window_.workspace().active().plan() != nullptr; },
                                    kPatience));
    }
    MainWindow window_;
};

TEST_F(Help, UndoBringsBackZoomBudgetAndSelection) {
    openSession();
    TimelinePlot& plot = window_.panel<TimelinePanel>().plot();
    Workspace& workspace = window_.workspace();
    const core::Bytes budget = workspace.budget();
    // In many turns, so that the timer is heard on a busy machine too.
    const auto rests = [] {
        for (int turn = 0; turn < 30; ++turn) QTest::qWait(ViewHistory::kRestMs / 10);
    };
    rests();
    plot.zoom(4);
    rests();
    const QCPRange zoomed = plot.visibleTime();
    workspace.setBudgetRatio(0.9);
    rests();
    workspace.selection().selectOp(3);
    rests();
    QTest::keyClick(&window_, Qt::Key_Z, Qt::ControlModifier);
    EXPECT_EQ(workspace.selection().op(), core::kNone);
    EXPECT_NE(workspace.budget(), budget);
    QTest::keyClick(&window_, Qt::Key_Z, Qt::ControlModifier);
    EXPECT_EQ(workspace.budget(), budget);
    EXPECT_NEAR(plot.visibleTime().upper, zoomed.upper, 1e-6);
    QTest::keyClick(&window_, Qt::Key_Z, Qt::ControlModifier);
    EXPECT_TRUE(plot.showsWhole());
    QTest::keyClick(&window_, Qt::Key_Z, Qt::ControlModifier | Qt::ShiftModifier);
    EXPECT_NEAR(plot.visibleTime().upper, zoomed.upper, 1e-6);
    EXPECT_NEAR(plot.visibleTime().lower, zoomed.lower, 1e-6);
}

TEST_F(Help, F1ExplainsTheViewThatHasTheKeys) {
    openSession();
    const auto helpOn = [&](QWidget& view) {
        window_.activateWindow();  // without a window manager nobody else does
        EXPECT_TRUE(QTest::qWaitForWindowActive(&window_));
        view.setFocus();
        QTest::keyClick(&window_, Qt::Key_F1);
        const QPointer<QMessageBox> box =
            window_.findChild<QMessageBox*>(QStringLiteral("contextHelp"));
        const QString text = box ? box->text() : QString();
        if (box) box->reject();
        EXPECT_TRUE(QTest::qWaitFor([&] { return !box; }, kPatience));
        return text;
    };
    EXPECT_TRUE(helpOn(window_.panel<WhatIfPanel>().slider())
                    .contains(QStringLiteral("What a budget costs")));
    EXPECT_TRUE(
        helpOn(window_.panel<TimelinePanel>().plot()).contains(QStringLiteral("Live memory")));
    for (const QDockWidget* dock : window_.findChildren<QDockWidget*>())
        EXPECT_FALSE(dock->widget()->whatsThis().isEmpty()) << dock->objectName().toStdString();
}

TEST_F(Help, TheFirstStartShowsTheSampleAndATour) {
    QTemporaryDir folder;
    const QString file = folder.filePath(QStringLiteral("settings.ini"));
    const auto memory = [&] {
        return WindowMemory(std::make_unique<QSettings>(file, QSettings::IniFormat));
    };
    window_.useMemory(memory());
    window_.welcome();
    ASSERT_TRUE(QTest::qWaitFor([&] { return window_.tour() != nullptr; }, kPatience));
    EXPECT_EQ(window_.workspace().document()->name, QStringLiteral("transformer.hws"));
    EXPECT_TRUE(window_.tour()->isVisible());
    const auto* next = window_.tour()->findChild<QPushButton*>(QStringLiteral("tourNext"));
    for (std::size_t stop = 0; window_.tour() && stop < 10; ++stop) {
        EXPECT_EQ(window_.tour()->at(), stop);
        EXPECT_TRUE(window_.rect().contains(window_.tour()->geometry())) << "stop " << stop;
        QTest::mouseClick(const_cast<QPushButton*>(next), Qt::LeftButton);
        if (window_.tour() && !window_.tour()->isVisible()) break;
    }
    EXPECT_TRUE(QTest::qWaitFor([&] { return window_.tour() == nullptr; }, kPatience));

    MainWindow second;
    second.useMemory(memory());
    second.welcome();
    QTest::qWait(50);
    EXPECT_FALSE(second.workspace().document()) << "only once";
    EXPECT_TRUE(second.emptyState().isVisibleTo(&second));
}

}  // namespace
}  // namespace hw::viewer

// SPDX-License-Identifier: GPL-3.0-or-later
// Everything that can be pressed, typed into or chosen from is reached with Tab and shows that it
// has the keys; no place keeps them.
#include <gtest/gtest.h>

#include <QAbstractItemView>
#include <QAbstractSpinBox>
#include <QApplication>
#include <QComboBox>
#include <QContextMenuEvent>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QPointer>
#include <QPushButton>
#include <QScrollBar>
#include <QSlider>
#include <QTabBar>
#include <QTest>
#include <algorithm>
#include <set>

#include "tests/gui/patience.h"
#include "tests/gui/training.h"
#include "viewer/panels/finder.h"
#include "viewer/panels/main_window.h"
#include "viewer/panels/map_panel.h"
#include "viewer/panels/peak_panel.h"
#include "viewer/panels/planner_menu.h"
#include "viewer/panels/table_view.h"
#include "viewer/panels/timeline_panel.h"
#include "viewer/plots/flame_view.h"
#include "viewer/plots/plot.h"
#include "viewer/plots/steps_plot.h"
#include "viewer/plots/treemap_view.h"

namespace hw::viewer {
namespace {

constexpr int kMostStops = 120;

std::string text(const QWidget* widget) {
    if (!widget) return "nothing";
    std::string said = widget->metaObject()->className();
    for (const QString& name : {widget->objectName(), widget->accessibleName()})
        if (!name.isEmpty()) said += " " + name.toStdString();
    if (const auto* button = qobject_cast<const QAbstractButton*>(widget))
        said += " “" + button->text().toStdString() + "”";
    return said;
}

bool isControl(const QWidget& widget) {
    if (qobject_cast<const QScrollBar*>(&widget)) return false;
    if (const auto* label = qobject_cast<const QLabel*>(&widget))
        return label->text().contains(QLatin1String("<a href"));
    return qobject_cast<const QAbstractButton*>(&widget) ||
           qobject_cast<const QComboBox*>(&widget) || qobject_cast<const QLineEdit*>(&widget) ||
           qobject_cast<const QAbstractSlider*>(&widget) ||
           qobject_cast<const QAbstractSpinBox*>(&widget) ||
           qobject_cast<const QAbstractItemView*>(&widget) ||
           qobject_cast<const QTabBar*>(&widget) || qobject_cast<const Plot*>(&widget) ||
           qobject_cast<const FlameView*>(&widget) || qobject_cast<const TreemapView*>(&widget);
}

// Part of a control that has the keys for it: the field of a spin box, the cross of a line.
bool isPart(const QWidget& widget) {
    if (widget.focusProxy()) return true;
    if (widget.focusPolicy() == Qt::NoFocus && qobject_cast<const Finder*>(widget.window()))
        return true;  // the list below the field that is typed into: the arrows go through it
    const QWidget* above = widget.parentWidget();
    return qobject_cast<const QLineEdit*>(above) || qobject_cast<const QAbstractSpinBox*>(above) ||
           qobject_cast<const QComboBox*>(above) || qobject_cast<const QHeaderView*>(&widget) ||
           (qobject_cast<const QTabBar*>(above) && qobject_cast<const QAbstractButton*>(&widget));
}

std::set<QWidget*> controlsOf(const QWidget& window) {
    std::set<QWidget*> found;
    for (QWidget* each : window.findChildren<QWidget*>())
        if (each->window() == &window && each->isVisible() && each->isEnabled() &&
            !each->visibleRegion().isEmpty() && isControl(*each) && !isPart(*each))
            found.insert(each);
    return found;
}

QImage drawn(QWidget& window, const QWidget& part) {
    const QRect place(part.mapTo(&window, QPoint()), part.size());
    return window.grab(place.adjusted(-4, -4, 4, 4) & window.rect()).toImage();
}

// Presses a key until the focus is where it was; what it came to, in order.
std::vector<QWidget*> walk(QWidget& window, Qt::Key key, Qt::KeyboardModifiers with) {
    std::vector<QWidget*> way;
    if (controlsOf(window).size() == 1) {
        QTest::keyClick(&window, key, with);
        return {window.focusWidget()};
    }
    for (int i = 0; i < kMostStops; ++i) {
        QWidget* before = window.focusWidget();
        QTest::keyClick(before ? before : &window, key, with);
        QWidget* now = window.focusWidget();
        EXPECT_NE(now, before) << "the keys stay in " << text(before);
        if (now == before || !now) return way;
        if (std::find(way.begin(), way.end(), now) != way.end()) {
            EXPECT_EQ(now, way.front()) << "the way ends in a loop at " << text(now);
            return way;
        }
        way.push_back(now);
    }
    ADD_FAILURE() << "no end after " << kMostStops << " stops";
    return way;
}

// Once each: what is in the window is walked through with every view.
void showsFocus(QWidget& window, const std::vector<QWidget*>& way, std::set<const QWidget*>& seen) {
    for (QWidget* each : way) {
        if (!each || !seen.insert(each).second) continue;
        // A window that was active may lose that to the one that opened it.
        const bool focused = QTest::qWaitFor(
            [&] {
                if (!each->hasFocus()) window.activateWindow();
                each->setFocus(Qt::TabFocusReason);
                return each->hasFocus();
            },
            kPatience);
        ASSERT_TRUE(focused) << text(each);
        const QImage with = drawn(window, *each);
        each->clearFocus();
        EXPECT_FALSE(with == drawn(window, *each)) << text(each) << " does not show the focus";
    }
}

void walkThrough(QWidget& window, const std::string& place, std::set<const QWidget*>& seen) {
    SCOPED_TRACE(place);
    window.activateWindow();
    ASSERT_TRUE(QTest::qWaitForWindowActive(&window, kPatience));
    const std::set<QWidget*> wanted = controlsOf(window);
    EXPECT_FALSE(wanted.empty());
    const std::vector<QWidget*> forward = walk(window, Qt::Key_Tab, {});
    const std::vector<QWidget*> back = walk(window, Qt::Key_Backtab, Qt::ShiftModifier);
    const std::set<QWidget*> came(forward.begin(), forward.end());
    EXPECT_EQ(came, std::set<QWidget*>(back.begin(), back.end())) << "another way back";
    for (QWidget* each : wanted) EXPECT_TRUE(came.count(each)) << "no way to " << text(each);
    for (const QWidget* each : forward) EXPECT_TRUE(each && each->isEnabled() && each->isVisible());
    showsFocus(window, forward, seen);
}

class Keyboard : public ::testing::Test {
protected:
    void SetUp() override {
        workspace_.selectPlanners({QStringLiteral("chen-greedy")});
        window_.setLight(false);  // with the style sheet, as it is used
        window_.resize(1500, 950);
        window_.show();
        ASSERT_TRUE(QTest::qWaitForWindowExposed(&window_));
    }
    void openSample() {
        ASSERT_TRUE(workspace_.loader().openNow(SAMPLE_SESSION, {}, std::nullopt));
        ASSERT_TRUE(workspace_.planNow());
        ASSERT_TRUE(workspace_.active().plan());
        ASSERT_TRUE(QTest::qWaitFor([&] { return !workspace_.busy(); }, kPatience));
        QTest::qWait(100);  // the layout settles
    }
    PeakPanel& openPeak() {
        openSample();
        window_.findChild<QDockWidget*>(QStringLiteral("peak"))->raise();
        QTest::qWait(60);
        return window_.panel<PeakPanel>();
    }
    /// Opens a dialog by what `keys` does, walks through it, and leaves it with Escape.
    template <class Keys>
    void walkDialog(const std::string& name, Keys keys) {
        window_.activateWindow();
        ASSERT_TRUE(QTest::qWaitForWindowActive(&window_, kPatience)) << name;
        keys();
        QPointer<QWidget> dialog;
        ASSERT_TRUE(QTest::qWaitFor(
            [&] { return (dialog = QApplication::activeModalWidget()) != nullptr; }, kPatience))
            << name;
        std::set<const QWidget*> seen;  // another dialog may lie where one was
        walkThrough(*dialog, name, seen);
        QTest::keyClick(dialog, Qt::Key_Escape);
        EXPECT_TRUE(QTest::qWaitFor([&] { return !dialog || dialog->isHidden(); }, kPatience))
            << name << ": Escape does not leave it";
    }
    std::set<const QWidget*> seen_;
    MainWindow window_;
    Workspace& workspace_ = window_.workspace();
};

TEST_F(Keyboard, OfTheFirstStart) {
    walkThrough(window_, "nothing open", seen_);
}

TEST_F(Keyboard, OfEveryView) {
    openSample();
    for (const PanelKind* kind : panelKinds()) {
        auto* dock = window_.findChild<QDockWidget*>(QLatin1String(kind->name));
        if (dock->isHidden()) continue;
        dock->raise();
        QTest::qWait(60);  // what it shows is made
        EXPECT_FALSE(dock->visibleRegion().isEmpty()) << kind->name;
        walkThrough(window_, kind->name, seen_);
    }
    window_.resize(960, 508);  // where the tool bar has not room for all
    QTest::qWait(60);
    walkThrough(window_, "960 x 508", seen_);
}

TEST_F(Keyboard, OfEveryDialog) {
    openSample();
    const auto press = [this](Qt::Key key, Qt::KeyboardModifiers with = {}) {
        return [this, key, with] { QTest::keyClick(&window_, key, with); };
    };
    walkDialog("record", press(Qt::Key_R, Qt::ControlModifier));
    walkDialog("train", press(Qt::Key_T, Qt::ControlModifier));
    walkDialog("picture", press(Qt::Key_S, Qt::ControlModifier));
    walkDialog("find", press(Qt::Key_F, Qt::ControlModifier));
    walkDialog("commands", press(Qt::Key_P, Qt::ControlModifier | Qt::ShiftModifier));
    walkDialog("what is this", press(Qt::Key_F1));
    walkDialog("export", press(Qt::Key_E, Qt::ControlModifier));
    walkDialog("report", press(Qt::Key_R));
    walkDialog("keys", press(Qt::Key_Question));
}

TEST_F(Keyboard, OfTheTour) {
    openSample();
    window_.startTour();
    walkThrough(window_, "tour", seen_);
    QTest::keyClick(window_.tour(), Qt::Key_Escape);
    EXPECT_TRUE(QTest::qWaitFor([&] { return !window_.tour(); }, kPatience));
}

// Every button of the tool bar has a key of its own, too.
TEST_F(Keyboard, HasAKeyForEveryButtonOfTheToolBar) {
    const auto* bar = window_.findChild<QToolBar*>(QStringLiteral("titleStrip"));
    for (const QAction* each : bar->actions())
        EXPECT_TRUE(each->text().isEmpty() || !each->shortcut().isEmpty())
            << each->text().toStdString();
}

TEST_F(Keyboard, TicksPlanners) {
    openSample();
    auto& menu = *window_.findChild<PlannerMenu*>();
    menu.setFocus(Qt::TabFocusReason);
    QStringList ticked;
    // The menu has a loop of its own until it closes.
    QTimer::singleShot(0, &window_, [&] {
        QWidget* popup = QApplication::activePopupWidget();
        ASSERT_TRUE(popup);
        EXPECT_TRUE(QTest::qWaitFor(
            [&] { return qobject_cast<QCheckBox*>(popup->focusWidget()) != nullptr; }, kPatience));
        QTest::keyClick(popup->focusWidget(), Qt::Key_Down);
        QTest::keyClick(popup->focusWidget(), Qt::Key_Space);
        ticked = workspace_.selectedPlanners();
        QTest::keyClick(popup->focusWidget(), Qt::Key_Escape);
    });
    QTest::keyClick(&menu, Qt::Key_Space);
    EXPECT_EQ(ticked.size(), 2) << ticked.join(QLatin1Char(' ')).toStdString();
    EXPECT_FALSE(QApplication::activePopupWidget());
}

TEST_F(Keyboard, SortsATableFromItsMenu) {
    auto& table = *openPeak().findChildren<TableView*>().front();
    table.setFocus(Qt::TabFocusReason);
    const auto choose = [&](const QString& column) {
        QTimer::singleShot(0, &window_, [&] {
            auto* menu = qobject_cast<QMenu*>(QApplication::activePopupWidget());
            ASSERT_TRUE(menu);
            for (const QAction* each : menu->actions())
                for (QAction* sort : each->menu() ? each->menu()->actions() : QList<QAction*>())
                    if (sort->text() == column) sort->trigger();
            QTest::keyClick(menu, Qt::Key_Escape);
        });
        QContextMenuEvent asked(QContextMenuEvent::Keyboard, QPoint(9, 9), QPoint(9, 9));
        QApplication::sendEvent(&table, &asked);
        return table.header()->sortIndicatorOrder();
    };
    const int column = table.header()->logicalIndex(1);
    const QString name = table.model()->headerData(column, Qt::Horizontal).toString();
    EXPECT_EQ(choose(name), Qt::DescendingOrder);
    EXPECT_EQ(table.header()->sortIndicatorSection(), column);
    EXPECT_EQ(choose(name), Qt::AscendingOrder);
    choose(QStringLiteral("As they come"));
    EXPECT_EQ(table.header()->sortIndicatorSection(), -1);
}

TEST_F(Keyboard, GoesFromTensorToTensorInATreemap) {
    TreemapView& map = *openPeak().findChildren<TreemapView*>().front();
    map.setFocus(Qt::TabFocusReason);
    std::set<core::StorageIndex> seen;
    for (const Qt::Key key : {Qt::Key_Right, Qt::Key_Right, Qt::Key_Down, Qt::Key_Down}) {
        QTest::keyClick(&map, key);
        seen.insert(workspace_.selection().current().storage);
    }
    EXPECT_FALSE(seen.count(core::kNone));
    EXPECT_GE(seen.size(), 3U);
    QTest::keyClick(&map, Qt::Key_Left);
    EXPECT_NE(workspace_.selection().current().storage, core::kNone);
}

TEST_F(Keyboard, ZoomsThePlotThatHasTheKeys) {
    openSample();
    window_.findChild<QDockWidget*>(QStringLiteral("map"))->raise();
    QTest::qWait(60);
    const QCPRange timeline = window_.panel<TimelinePanel>().plot().xAxis->range();
    MapPlot& map = window_.panel<MapPanel>().plot();
    const QCPRange whole = map.xAxis->range();
    map.setFocus(Qt::TabFocusReason);
    QTest::keyClick(&map, Qt::Key_W);
    const QCPRange closer = map.xAxis->range();
    EXPECT_LT(closer.size(), whole.size() * 0.9);
    QTest::keyClick(&map, Qt::Key_A);
    EXPECT_LT(map.xAxis->range().lower, closer.lower);
    EXPECT_NEAR(map.xAxis->range().size(), closer.size(), whole.size() * 1e-6);
    QTest::keyClick(&map, Qt::Key_0);
    EXPECT_NEAR(map.xAxis->range().size(), whole.size(), whole.size() * 1e-6);
    EXPECT_EQ(window_.panel<TimelinePanel>().plot().xAxis->range(), timeline) << "it has none";
    QTest::keyClick(&window_.panel<TimelinePanel>().plot(), Qt::Key_W);
    EXPECT_LT(window_.panel<TimelinePanel>().plot().xAxis->range().size(), timeline.size());
}

// What appears while another process trains: the bars, and the view of a run within a budget.
class KeyboardMeanwhile : public samples::WithTraining<Keyboard> {
protected:
    QPushButton& button(const char* name) {
        return *window_.findChild<QPushButton*>(QLatin1String(name));
    }
    /// Trains a program within a budget for as long as its script is there.
    void launch() {
        QByteArray program(samples::kTraining);
        program.replace("import time", "import os, time");
        program.replace("    print(step, flush=True)\n",
                        "    if not os.path.exists(__file__): break\n");
        QFile script(folder_.filePath(QStringLiteral("mine.py")));
        ASSERT_TRUE(script.open(QIODevice::WriteOnly));
        script.write(program);
        script.close();
        window_.liveRun().launch(LiveTerms{core::Bytes(2'700'000), QStringLiteral("highwater")},
                                 {QStringLiteral("/usr/bin/python3"), script.fileName()});
    }
    /// Walks through what is there now, which has to include the button of that name.
    void walkWith(const char* name) {
        ASSERT_TRUE(QTest::qWaitFor([&] { return controlsOf(window_).count(&button(name)) == 1; },
                                    kPatience))
            << name << " is not seen";
        seen_.erase(&button(name));  // by another text it is another button
        walkThrough(window_, name, seen_);
    }
    /// Comes to the button with Tab alone, and presses it.
    void pressByKeys(const char* name) {
        window_.centralWidget()->setFocus();
        for (int i = 0; i < kMostStops && window_.focusWidget() != &button(name); ++i)
            QTest::keyClick(window_.focusWidget() ? window_.focusWidget() : &window_, Qt::Key_Tab);
        ASSERT_EQ(window_.focusWidget(), &button(name)) << text(window_.focusWidget());
        QTest::keyClick(&button(name), Qt::Key_Space);
    }
    QTemporaryDir folder_;
};

TEST_F(KeyboardMeanwhile, ARecordingIsStopped) {
    Recorder& recorder = window_.recorder();
    recorder.attach(training_->pid(), QStringLiteral("train.py"),
                    training_->folder() + QStringLiteral("/keys.hws"), 0);
    ASSERT_NO_FATAL_FAILURE(walkWith("recordingButton"));
    ASSERT_TRUE(QTest::qWaitFor([&] { return recorder.steps() >= 2; }, kPatience));
    ASSERT_NO_FATAL_FAILURE(walkWith("recordingButton"));
    ASSERT_NO_FATAL_FAILURE(pressByKeys("recordingButton"));
    ASSERT_TRUE(QTest::qWaitFor([&] { return !recorder.busy(); }, kPatience));
    EXPECT_TRUE(training_->goesOn());
    ASSERT_TRUE(
        QTest::qWaitFor([&] { return window_.workspace().document() != nullptr; }, kPatience));
    EXPECT_EQ(controlsOf(window_).count(&button("recordingButton")), 0U);
    walkThrough(window_, "after the recording", seen_);
}

TEST_F(KeyboardMeanwhile, ARunWithinABudgetIsZoomedStoppedAndClosed) {
    LiveRun& run = window_.liveRun();
    ASSERT_NO_FATAL_FAILURE(launch());
    ASSERT_NO_FATAL_FAILURE(walkWith("liveButton"));
    ASSERT_TRUE(QTest::qWaitFor(
        [&] { return run.progress().steps() >= 12 && window_.livePanel().isVisible(); },
        kPatience));
    auto& plot = *window_.livePanel().findChild<Plot*>(QStringLiteral("liveSteps"));
    EXPECT_EQ(controlsOf(window_).count(&plot), 1U);
    ASSERT_NO_FATAL_FAILURE(walkWith("liveButton"));
    plot.setFocus(Qt::TabFocusReason);
    const double seen = plot.xAxis->range().size();
    QTest::keyClick(&plot, Qt::Key_W);
    EXPECT_LT(plot.xAxis->range().size(), seen * 0.9);

    ASSERT_NO_FATAL_FAILURE(pressByKeys("liveButton"));
    ASSERT_TRUE(QTest::qWaitFor([&] { return !run.busy(); }, kPatience));
    EXPECT_EQ(button("liveButton").text(), QStringLiteral("Close"));
    ASSERT_NO_FATAL_FAILURE(walkWith("liveButton"));
    ASSERT_NO_FATAL_FAILURE(pressByKeys("liveButton"));
    EXPECT_FALSE(window_.livePanel().isVisible());
    walkThrough(window_, "after the run", seen_);
}

TEST_F(KeyboardMeanwhile, ARunBesideASessionIsATabThatTheKeysComeTo) {
    openSample();
    LiveRun& run = window_.liveRun();
    ASSERT_NO_FATAL_FAILURE(launch());
    ASSERT_TRUE(QTest::qWaitFor(
        [&] { return run.progress().steps() >= 2 && window_.livePanel().isVisible(); }, kPatience));
    ASSERT_NO_FATAL_FAILURE(walkWith("liveButton"));
    ASSERT_NO_FATAL_FAILURE(pressByKeys("liveButton"));
    ASSERT_TRUE(QTest::qWaitFor([&] { return !run.busy(); }, kPatience));
    ASSERT_NO_FATAL_FAILURE(pressByKeys("liveButton"));
    EXPECT_FALSE(window_.livePanel().isVisible());
}

// The strip of three steps, the second of which is open.
TEST(StepsByKeys, GoToTheStepBeforeAndAfter) {
    auto document = std::make_shared<Document>();
    for (int step = 4; step < 7; ++step) {
        StepSummary summary;
        summary.step = step;
        summary.begin = core::Nanoseconds(step * 1000);
        summary.end = core::Nanoseconds(step * 1000 + 900);
        document->overview.push_back(summary);
    }
    document->step = 5;
    StepsPlot plot;
    plot.setDocument(document);
    std::vector<qint64> opened;
    QObject::connect(&plot, &StepsPlot::stepClicked, &plot,
                     [&](qint64 step) { opened.push_back(step); });
    QTest::keyClick(&plot, Qt::Key_Left);
    QTest::keyClick(&plot, Qt::Key_Right);
    EXPECT_EQ(opened, (std::vector<qint64>{4, 6}));
    document->step = 6;
    QTest::keyClick(&plot, Qt::Key_Right);
    EXPECT_EQ(opened.size(), 2U) << "it is the last one";
}

}  // namespace
}  // namespace hw::viewer

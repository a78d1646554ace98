// SPDX-License-Identifier: GPL-3.0-or-later
// Finding, inspecting and measuring: by mouse, and by keys alone.
#include <gtest/gtest.h>

#include <QClipboard>
#include <QGuiApplication>
#include <QTest>

#include "viewer/models/time_range.h"
#include "viewer/panels/inspector_panel.h"
#include "viewer/panels/main_window.h"
#include "viewer/panels/search_dialog.h"
#include "viewer/panels/timeline_panel.h"

namespace hw::viewer {
namespace {

class Inspect : public ::testing::Test {
protected:
    void SetUp() override {
        workspace_.selectPlanners({QStringLiteral("none")});
        ASSERT_TRUE(workspace_.loader().openNow(SAMPLE_SESSION, {}, std::nullopt));
        window_.resize(1400, 900);
        window_.show();
        ASSERT_TRUE(QTest::qWaitForWindowExposed(&window_));
    }
    InspectorPanel& inspector() { return window_.panel<InspectorPanel>(); }
    TimelinePlot& plot() { return window_.panel<TimelinePanel>().plot(); }
    /// The row with this name, of the first group that has one; of what is shown.
    QModelIndex row(const char* name) {
        const InspectorModel& model = inspector().model();
        for (int group = 0; group < model.rowCount(); ++group) {
            const QModelIndex parent = model.index(group, 0);
            for (int at = 0; at < model.rowCount(parent); ++at) {
                const QModelIndex found = model.index(at, InspectorModel::Value, parent);
                if (found.siblingAtColumn(0).data() == QLatin1String(name))
                    return inspector().table().shown().mapFromSource(found);
            }
        }
        return {};
    }
    core::StorageIndex largestActivation() {
        const auto& storages = workspace_.document()->graph.storages;
        core::StorageIndex best = core::kNone;
        for (core::StorageIndex s = 0; s < static_cast<int>(storages.size()); ++s)
            if (storages[s].category == core::Category::Activation && !storages[s].isConstant() &&
                (best == core::kNone || storages[s].bytes > storages[best].bytes))
                best = s;
        return best;
    }
    MainWindow window_;
    Workspace& workspace_ = window_.workspace();
};

TEST_F(Inspect, AClickOnALinkSelectsItAndUndoGoesBack) {
    const core::StorageIndex storage = largestActivation();
    workspace_.selection().selectStorage(storage);
    QTest::qWait(400);  // the history takes what rests
    const QModelIndex link = row("made by");
    ASSERT_TRUE(link.isValid());
    TableView& table = inspector().table();
    table.scrollTo(link);
    QTest::mouseClick(table.viewport(), Qt::LeftButton, {}, table.visualRect(link).center());
    EXPECT_EQ(workspace_.selection().current().kind, Selection::Kind::Op);
    EXPECT_EQ(workspace_.selection().current().op,
              workspace_.document()->graph.storages[storage].creator);
    EXPECT_EQ(row("name").data().toString(),
              toQString(workspace_.document()->graph.ops[workspace_.selection().op()].name));
    QTest::keyClick(&window_, Qt::Key_Z, Qt::ControlModifier);
    EXPECT_EQ(workspace_.selection().current().storage, storage);
}

TEST_F(Inspect, KeysAloneReadCopyAndFollow) {
    workspace_.selection().selectStorage(largestActivation());
    QTest::keyClick(&window_, Qt::Key_I);
    TableView& table = inspector().table();
    EXPECT_TRUE(table.hasFocus());
    const QModelIndex size = row("size");
    for (int i = 0; i < 40 && table.currentIndex().row() != size.row(); ++i)
        QTest::keyClick(&table, Qt::Key_Down);
    ASSERT_EQ(table.currentIndex().siblingAtColumn(1), size);
    QTest::keyClick(&table, Qt::Key_C, Qt::ControlModifier);
    EXPECT_EQ(QGuiApplication::clipboard()->text(), size.data().toString());
    const QModelIndex layer = row("layer");
    for (int i = 0; i < 40 && table.currentIndex().siblingAtColumn(1) != layer; ++i)
        QTest::keyClick(&table, Qt::Key_Down);
    EXPECT_EQ(workspace_.selection().current().kind, Selection::Kind::Tensor)
        << "reading follows nothing";
    QTest::keyClick(&table, Qt::Key_Return);
    EXPECT_EQ(workspace_.selection().current().kind, Selection::Kind::Layer);
    QTest::keyClick(&window_, Qt::Key_C, Qt::ControlModifier | Qt::ShiftModifier);
    EXPECT_TRUE(QGuiApplication::clipboard()->text().startsWith(QStringLiteral("layer\n")));
}

TEST_F(Inspect, LongValuesWrapAndNoRowIsCut) {
    workspace_.selection().selectStorage(largestActivation());
    QTest::qWait(50);
    TableView& table = inspector().table();
    const QModelIndex why = row("because");
    ASSERT_TRUE(why.isValid());
    table.scrollTo(why);
    const QString text = why.data().toString();
    const int room = table.columnWidth(InspectorModel::Value) - 12;
    const int lines = QFontMetrics(table.font()).horizontalAdvance(text) / room;
    EXPECT_GE(table.visualRect(why).height(), (lines > 0 ? 2 : 1) * 14);
    EXPECT_LE(table.columnWidth(0) + table.columnWidth(1), table.viewport()->width());
}

TEST_F(Inspect, FindSelectsAndZoomsThere) {
    QTest::keyClick(&window_, Qt::Key_F, Qt::ControlModifier);
    const QPointer<SearchDialog> search = window_.findChild<SearchDialog*>();
    ASSERT_TRUE(search && search->isVisible());
    QTest::keyClicks(&search->field(), QStringLiteral("#7"));
    ASSERT_GT(search->model().rowCount(), 1);
    QTest::keyClick(&search->field(), Qt::Key_Down);
    const Target second = search->model().target(1);
    QTest::keyClick(&search->field(), Qt::Key_Return);
    ASSERT_EQ(second.kind, Selection::Kind::Op);
    EXPECT_EQ(workspace_.selection().op(), second.index);
    EXPECT_FALSE(plot().showsWhole());
    const TimeRange extent = *extentOf(*workspace_.document(), workspace_.selection().current());
    EXPECT_LE(plot().visibleTime().lower, milliseconds(extent.begin));
    EXPECT_GE(plot().visibleTime().upper, milliseconds(extent.end));
    EXPECT_TRUE(QTest::qWaitFor([&] { return !search; }, 120'000)) << "gone once it was used";
}

TEST_F(Inspect, LettersZoomAndMoveTheTimeline) {
    const QCPRange whole = plot().visibleTime();
    QTest::keyClick(&window_, Qt::Key_W);
    QTest::keyClick(&window_, Qt::Key_W);
    const QCPRange near = plot().visibleTime();
    EXPECT_LT(near.size(), whole.size());
    QTest::keyClick(&window_, Qt::Key_D);
    EXPECT_GT(plot().visibleTime().lower, near.lower);
    QTest::keyClick(&window_, Qt::Key_A);
    EXPECT_NEAR(plot().visibleTime().lower, near.lower, 1e-6);
    QTest::keyClick(&window_, Qt::Key_S);
    EXPECT_GT(plot().visibleTime().size(), near.size());
    workspace_.selection().selectStorage(largestActivation());
    QTest::keyClick(&window_, Qt::Key_F);
    const TimeRange life = *extentOf(*workspace_.document(), workspace_.selection().current());
    EXPECT_NEAR(plot().visibleTime().upper,
                milliseconds(withSurroundings(*workspace_.document(), life).end), 1e-3);
}

TEST_F(Inspect, ADragIsMeasuredWhileItLastsAndKeysStretchIt) {
    QTest::mousePress(&plot(), Qt::LeftButton, Qt::ShiftModifier, {150, 100});
    QMouseEvent move(QEvent::MouseMove, QPointF(320, 100), plot().mapToGlobal(QPointF(320, 100)),
                     Qt::NoButton, Qt::LeftButton, Qt::ShiftModifier);
    QApplication::sendEvent(&plot(), &move);
    EXPECT_FALSE(workspace_.selection().range()) << "not before the button is let go";
    QTest::mouseRelease(&plot(), Qt::LeftButton, Qt::ShiftModifier, {320, 100});
    ASSERT_TRUE(workspace_.selection().range());
    EXPECT_TRUE(row("allocated").isValid()) << "the inspector tells it too";
    EXPECT_TRUE(row("highest").isValid());
    QTest::keyClick(&plot(), Qt::Key_Escape);
    EXPECT_FALSE(workspace_.selection().range());
    workspace_.selection().selectOp(3);
    QTest::keyClick(&plot(), Qt::Key_Right, Qt::ShiftModifier);
    ASSERT_TRUE(workspace_.selection().range());
    QTest::keyClick(&plot(), Qt::Key_F);
    EXPECT_NEAR(plot().visibleTime().lower, milliseconds(workspace_.selection().range()->begin),
                1e-3);
}

TEST_F(Inspect, TheRightButtonSelectsWhatItsMenuSpeaksOf) {
    const QCPRange before = plot().visibleTime();
    QTest::mousePress(&plot(), Qt::RightButton, {}, {300, 100});
    const core::OpIndex op = workspace_.selection().op();
    EXPECT_NE(op, core::kNone);
    QTest::mouseRelease(&plot(), Qt::RightButton, {}, {340, 100});
    EXPECT_EQ(workspace_.selection().op(), op) << "letting go chooses nothing else";
    EXPECT_EQ(plot().visibleTime().lower, before.lower) << "nor does it move the view";
    for (const PanelKind* kind : panelKinds()) {
        const auto* dock = window_.findChild<QDockWidget*>(QLatin1String(kind->name));
        EXPECT_GE(dock->widget()->actions().size(), 6) << kind->name;
        EXPECT_EQ(dock->widget()->contextMenuPolicy(), Qt::ActionsContextMenu) << kind->name;
    }
}

// Every view comes to the front without a mouse.
TEST_F(Inspect, KeysReachEveryView) {
    for (const PanelKind* kind : panelKinds()) {
        const auto* dock = window_.findChild<QDockWidget*>(QLatin1String(kind->name));
        if (dock->isHidden()) continue;
        window_.activateWindow();  // no window manager does so when the palette has closed
        ASSERT_TRUE(QTest::qWaitForWindowActive(&window_));
        QTest::keyClick(&window_, Qt::Key_P, Qt::ControlModifier | Qt::ShiftModifier);
        const QPointer<Finder> palette =
            window_.findChild<Finder*>(QStringLiteral("commandPalette"));
        ASSERT_TRUE(palette);
        QTest::keyClicks(&palette->field(), QStringLiteral("View: ") + dock->windowTitle());
        QTest::keyClick(&palette->field(), Qt::Key_Return);
        ASSERT_TRUE(
            QTest::qWaitFor([&] { return !palette && !dock->visibleRegion().isEmpty(); }, 120'000))
            << kind->name;
    }
}

}  // namespace
}  // namespace hw::viewer

// SPDX-License-Identifier: GPL-3.0-or-later
// The flame graph: its widths are bytes; it zooms, searches, and is used without a mouse.
#include <gtest/gtest.h>

#include <QTest>
#include <algorithm>

#include "viewer/panels/flame_panel.h"
#include "viewer/panels/main_window.h"
#include "viewer/plots/colours.h"
#include "viewer/plots/theme.h"

namespace hw::viewer {
namespace {

class Flame : public ::testing::Test {
protected:
    void SetUp() override {
        workspace_.selectPlanners({QStringLiteral("none")});
        ASSERT_TRUE(workspace_.loader().openNow(SAMPLE_SESSION, {}, std::nullopt));
        panel_.resize(1000, 500);
        panel_.show();
        ASSERT_TRUE(QTest::qWaitForWindowExposed(&panel_));
        ASSERT_TRUE(made());
    }
    /// The tree is made in the background.
    bool made() {
        return QTest::qWaitFor([&] { return panel_.view().root().bytes > core::Bytes(0); },
                               120'000);
    }
    /// The widest cell of a row.
    FlameView::Cell widest(int depth) const {
        FlameView::Cell best;
        for (const FlameView::Cell& cell : panel_.view().cells())
            if (cell.depth == depth && cell.box.width() > best.box.width()) best = cell;
        return best;
    }
    void press(Qt::Key key) { QTest::keyClick(&panel_.view(), key); }

    Workspace workspace_;
    FlamePanel panel_{workspace_};
};

TEST_F(Flame, TheSampleHasNoStacksAndIsShownByLayer) {
    EXPECT_TRUE(workspace_.document()->stacks.empty());
    EXPECT_EQ(panel_.tree().currentIndex(), 2);
    EXPECT_EQ(panel_.view().root().bytes, workspace_.document()->peak());
}

TEST_F(Flame, ALayerIsWrittenWithoutTheOneItIsIn) {
    const FlameView& view = panel_.view();
    EXPECT_EQ(view.label(widest(2)), QStringLiteral("encoder"));
    EXPECT_EQ(view.label(widest(3)), QStringLiteral("layers"));
    EXPECT_EQ(view.describe(*widest(3).node).count(QStringLiteral("encoder.layers")), 1)
        << "what is told of it has the whole path";
}

// "recorded peak" was dark on dark grey.
TEST_F(Flame, WhatIsWrittenReadsInBothThemes) {
    for (const bool light : {false, true}) {
        const ThemeFor colours(light);
        const QImage drawn = panel_.view().grab().toImage();
        for (const int depth : {0, 1, 2, 3}) {
            const QRect box = widest(depth).box.toRect();
            const QColor fill = drawn.pixelColor(box.center().x(), box.bottom() - 3);
            double best = 1;
            for (int x = box.left() + 5; x < box.left() + 60; ++x)
                for (int y = box.top() + 2; y < box.bottom() - 2; ++y)
                    best = std::max(best, contrast(fill, drawn.pixelColor(x, y)));
            EXPECT_GE(best, 3.5) << "row " << depth << (light ? " light" : " dark");
        }
    }
}

TEST_F(Flame, ShowsWhatIsMoreAndLessInAnotherSession) {
    EXPECT_TRUE(panel_.beside().isHidden());
    const core::OriginNode alone = panel_.view().root();
    workspace_.loader().setRecords({QStringLiteral(SAMPLE_SESSION)});
    ASSERT_TRUE(QTest::qWaitFor([&] { return panel_.view().other() != nullptr; }, 120'000));
    const FlameView& view = panel_.view();
    EXPECT_EQ(view.root().other, view.root().bytes) << "it is the same session";
    EXPECT_EQ(view.root().either, view.root().bytes);
    const QString peak = workspace_.document()->size.text(workspace_.document()->peak());
    EXPECT_TRUE(view.describe(view.root()).contains(peak + QStringLiteral(" here, ") + peak))
        << view.describe(view.root()).toStdString();
    for (const FlameView::Cell& cell : panel_.view().cells())
        EXPECT_EQ(cell.node->bytes, cell.node->other) << cell.node->name;
    panel_.beside().setCurrentIndex(1);
    ASSERT_TRUE(QTest::qWaitFor([&] { return panel_.view().other() == nullptr; }, 120'000));
    EXPECT_EQ(panel_.view().root().bytes, alone.bytes);
}

// By hand: half of one part is gone, and there is one that was not.
TEST_F(Flame, PartsOfADifferenceHaveItsSignAndColour) {
    core::OriginNode here = panel_.view().root(), there = here;
    const std::string smaller = here.children[0].name;
    const core::Bytes gone(here.children[0].bytes.count() / 2);
    there.children[0].children.clear();
    there.children[0].bytes -= gone, there.bytes -= gone;
    core::OriginNode fresh;
    fresh.name = "new layer", fresh.bytes = gone + gone;
    there.bytes += fresh.bytes;
    there.children.push_back(fresh);
    panel_.view().show(workspace_.document(), core::besideOther(here, there),
                       QStringLiteral("recorded peak"), workspace_.document());
    const QImage drawn = panel_.view().grab().toImage();
    int found = 0;
    for (const FlameView::Cell& cell : panel_.view().cells()) {
        if (cell.depth != 1) continue;
        const QString told = panel_.view().describe(*cell.node);
        const QPoint spot(static_cast<int>(cell.box.center().x()),
                          static_cast<int>(cell.box.bottom()) - 3);
        const bool more = cell.node->name == "new layer";
        if (!more && cell.node->name != smaller) continue;
        ++found;
        EXPECT_TRUE(told.contains(more ? QStringLiteral("\n+") : QStringLiteral("\n−")))
            << told.toStdString();
        EXPECT_EQ(drawn.pixelColor(spot).name(),
                  changeColour(more ? 1 : ratio(cell.node->other, cell.node->bytes) - 1).name());
    }
    EXPECT_EQ(found, 2);
}

TEST_F(Flame, PartsAreAsWideAsTheirBytes) {
    const auto& cells = panel_.view().cells();
    ASSERT_GT(cells.size(), 10u);
    const FlameView::Cell& top = cells.front();
    for (const FlameView::Cell& cell : cells) {
        EXPECT_NEAR(cell.box.width() / top.box.width(), ratio(cell.node->bytes, top.node->bytes),
                    1e-9);
        if (cell.parent < 0) continue;
        const QRectF& above = cells[static_cast<std::size_t>(cell.parent)].box;
        EXPECT_GE(cell.box.left(), above.left() - 1e-6);
        EXPECT_LE(cell.box.right(), above.right() + 1e-6);
    }
}

TEST_F(Flame, AClickZoomsAndOneAboveGoesBack) {
    const FlameView::Cell part = widest(2);
    QTest::mouseClick(&panel_.view(), Qt::LeftButton, {}, part.box.center().toPoint());
    EXPECT_EQ(&panel_.view().zoomed(), part.node);
    EXPECT_NEAR(widest(2).box.width(), widest(0).box.width(), 1e-9) << "it fills the width";
    QTest::mouseClick(&panel_.view(), Qt::LeftButton, {}, widest(0).box.center().toPoint());
    EXPECT_EQ(&panel_.view().zoomed(), &panel_.view().root());
}

TEST_F(Flame, TheKeysGoFromPartToPart) {
    panel_.view().setFocus();
    press(Qt::Key_Down);
    EXPECT_EQ(panel_.view().current(), 0);
    press(Qt::Key_Down);
    press(Qt::Key_Down);
    const int first = panel_.view().current();
    EXPECT_EQ(panel_.view().cells()[static_cast<std::size_t>(first)].depth, 2);
    press(Qt::Key_Right);
    EXPECT_GT(panel_.view().current(), first);
    press(Qt::Key_Return);
    EXPECT_NE(&panel_.view().zoomed(), &panel_.view().root());
    press(Qt::Key_Escape);
    press(Qt::Key_Escape);  // a row at a time
    EXPECT_EQ(&panel_.view().zoomed(), &panel_.view().root());
}

TEST_F(Flame, AnOpSelectsItsLargestTensorEverywhere) {
    panel_.view().setFocus();
    for (int i = 0; i < 20; ++i) press(Qt::Key_Down);  // to the lowest row
    const FlameView::Cell& cell =
        panel_.view().cells()[static_cast<std::size_t>(panel_.view().current())];
    ASSERT_TRUE(cell.node->children.empty());
    EXPECT_EQ(workspace_.selection().current().storage, cell.node->largest);
    EXPECT_NE(cell.node->largest, core::kNone);
}

TEST_F(Flame, TheSearchCountsWhatItFindsOnce) {
    panel_.search().setText(QStringLiteral("no such part"));
    EXPECT_EQ(panel_.view().found(), core::Bytes(0));
    const FlameView::Cell part = widest(1);
    panel_.search().setText(toQString(part.node->name));
    EXPECT_GE(panel_.view().found(), part.node->bytes);
    EXPECT_LE(panel_.view().found(), panel_.view().root().bytes);
}

TEST_F(Flame, WhatIsSavedForBackwardAreTheActivations) {
    core::Bytes activations;
    for (const core::Storage& storage : workspace_.document()->graph.storages)
        if (storage.category == core::Category::Activation && !storage.isConstant())
            activations += storage.bytes;
    EXPECT_GT(activations, core::Bytes(0));
    EXPECT_NE(activations, panel_.view().root().bytes) << "of the peak";
    panel_.bytes().setCurrentIndex(1);
    EXPECT_TRUE(
        QTest::qWaitFor([&] { return panel_.view().root().bytes == activations; }, 120'000));
}

}  // namespace
}  // namespace hw::viewer

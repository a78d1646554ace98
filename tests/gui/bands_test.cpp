// SPDX-License-Identifier: GPL-3.0-or-later
// A trace without categories in the window: legends name lines, and blocks of the map can be
// clicked.
#include <gtest/gtest.h>

#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>
#include <algorithm>

#include "tests/gui/docks.h"
#include "tests/gui/patience.h"
#include "tests/models/small_trace.h"
#include "viewer/models/inspection.h"
#include "viewer/panels/flame_panel.h"
#include "viewer/panels/inspector_panel.h"
#include "viewer/panels/main_window.h"
#include "viewer/panels/map_panel.h"
#include "viewer/panels/peak_panel.h"
#include "viewer/panels/timeline_panel.h"
#include "viewer/plots/theme.h"

namespace hw::viewer {
namespace {

QStringList namesOf(const std::vector<Legend::Item>& items) {
    QStringList names;
    for (const Legend::Item& item : items) names << item.name;
    return names;
}

class LineViews : public ::testing::Test {
protected:
    void SetUp() override {
        const std::string path = folder_.filePath(QStringLiteral("small.hws")).toStdString();
        ASSERT_TRUE(samples::writeSmallTrace(path));
        ASSERT_TRUE(workspace_.loader().openNow(path, {}, std::nullopt));
        window_.resize(1400, 900);
        window_.show();
        ASSERT_TRUE(QTest::qWaitForWindowExposed(&window_));
    }
    void raise(const char* dock, const QWidget& view) { raiseDock(window_, dock, view); }
    static QStringList legendOf(const Panel& panel) {
        const auto* legend = panel.header()->findChild<Legend*>();
        return legend ? namesOf(legend->items()) : QStringList();
    }
    QTemporaryDir folder_;
    MainWindow window_;
    Workspace& workspace_ = window_.workspace();
};

TEST_F(LineViews, LegendsNameTheLines) {
    const QStringList lines{QStringLiteral("(before the history)"), QStringLiteral("train.py:3"),
                            QStringLiteral("model.py:8")};
    QStringList all = lines;
    all << QStringLiteral("data.py:5");  // after the peak
    EXPECT_EQ(legendOf(window_.panel<TimelinePanel>()), all);
    raise("peak", window_.panel<PeakPanel>().recorded());
    EXPECT_EQ(legendOf(window_.panel<PeakPanel>()), lines);
    FlamePanel& flame = window_.panel<FlamePanel>();
    raise("flame", flame.view());
    ASSERT_TRUE(
        QTest::qWaitFor([&] { return flame.view().root().bytes > core::Bytes(0); }, kPatience));
    EXPECT_EQ(flame.view().root().bytes, workspace_.document()->peak());
    EXPECT_EQ(legendOf(flame), lines);
    raise("map", window_.panel<MapPanel>().plot());
    ASSERT_TRUE(QTest::qWaitFor([&] { return window_.panel<MapPanel>().plot().map() != nullptr; },
                                kPatience));
    EXPECT_EQ(legendOf(window_.panel<MapPanel>()),
              all + QStringList(QStringLiteral("blank: free")));
}

TEST_F(LineViews, AClickOnABlockOfTheMapSelectsItsTensor) {
    MapPlot& plot = window_.panel<MapPanel>().plot();
    raise("map", plot);
    ASSERT_TRUE(QTest::qWaitFor([&] { return plot.map() != nullptr; }, kPatience));
    const auto& blocks = plot.map()->blocks;
    const auto block = std::find_if(blocks.begin(), blocks.end(), [](const MapBlock& each) {
        return each.address == 0x2000 && each.first == 1;
    });
    ASSERT_NE(block, blocks.end());
    const QPointF middle = plot.pixelOf(*block);
    EXPECT_TRUE(plot.describe(middle).startsWith(QStringLiteral("model.py:8 forward")))
        << plot.describe(middle).toStdString();
    QTest::mouseClick(&plot, Qt::LeftButton, {}, middle.toPoint());
    const Selection& selection = workspace_.selection().current();
    EXPECT_EQ(selection.kind, Selection::Kind::Tensor);
    EXPECT_EQ(selection.storage, block->storage);
    const QString told = factsAsText(inspect(*workspace_.document(), selection, {}, std::nullopt));
    for (const char* fact : {"100 bytes", "/a/model.py:8", "from", "until", "at the peak"})
        EXPECT_TRUE(told.contains(QLatin1String(fact))) << fact << " in\n" << told.toStdString();
}

// Of many events only the peak's tensors are loaded; a block still says what is known of it.
TEST_F(LineViews, AClickOnABlockWhoseTensorIsNotLoadedSelectsTheBlock) {
    auto map = std::make_shared<AddressMap>(recordedMap(*workspace_.document()));
    for (MapBlock& block : map->blocks) block.storage = core::kNone;
    MapPlot plot;
    plot.resize(800, 500);
    plot.show(workspace_.document(), nullptr, map);
    plot.replot(QCustomPlot::rpImmediateRefresh);
    QSignalSpy picked(&plot, &MapPlot::blockPicked);
    const MapBlock& block = map->blocks[1];
    EXPECT_TRUE(
        plot.describe(plot.pixelOf(block)).startsWith(QStringLiteral("model.py:8 forward")));
    QTest::mouseClick(&plot, Qt::LeftButton, {}, plot.pixelOf(block).toPoint());
    ASSERT_EQ(picked.size(), 1);
    const auto facts = picked[0][0].value<BlockFacts>();
    EXPECT_EQ(facts.bytes, core::Bytes(block.bytes));
    EXPECT_EQ(facts.storage, block.recorded);
    workspace_.selection().selectBlock(facts);
    EXPECT_EQ(workspace_.selection().current().kind, Selection::Kind::Block);
    EXPECT_EQ(workspace_.selection().current().block, facts);
}

}  // namespace
}  // namespace hw::viewer

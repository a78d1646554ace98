// SPDX-License-Identifier: GPL-3.0-or-later
// Peak, map, layers and plan in one window: what is chosen in one is marked in all.
#include <gtest/gtest.h>

#include <QClipboard>
#include <QFile>
#include <QGuiApplication>
#include <QTemporaryDir>
#include <QTest>
#include <algorithm>

#include "tests/gui/docks.h"
#include "tests/gui/patience.h"
#include "tests/models/test_graphs.h"
#include "viewer/models/table_text.h"
#include "viewer/panels/compare_panel.h"
#include "viewer/panels/layers_panel.h"
#include "viewer/panels/main_window.h"
#include "viewer/panels/map_panel.h"
#include "viewer/panels/peak_panel.h"
#include "viewer/panels/plan_panel.h"
#include "viewer/panels/timeline_panel.h"
#include "viewer/panels/whatif_panel.h"

namespace hw::viewer {
namespace {

const std::string kSample = SAMPLE_SESSION;

QStringList legendOf(const TimelinePanel& panel) {
    QStringList names;
    for (const Legend::Item& item : panel.legend().items()) names << item.name;
    return names;
}

class Views : public ::testing::Test {
protected:
    void SetUp() override {
        workspace_.selectPlanners({QStringLiteral("none")});
        ASSERT_TRUE(workspace_.loader().openNow(kSample, {}, std::nullopt));
        for (const PlanRow& row : workspace_.plans().rows(workspace_.budget()))
            if (row.plan && row.plan->ok() && row.plan->recomputedOps > 0)
                workspace_.choose(row.plan);
        ASSERT_TRUE(workspace_.active().plan());
        window_.resize(1400, 900);
        window_.show();
        ASSERT_TRUE(QTest::qWaitForWindowExposed(&window_));
    }
    void raise(const char* dock, const QWidget& view) { raiseDock(window_, dock, view); }
    MainWindow window_;
    Workspace& workspace_ = window_.workspace();
};

TEST_F(Views, AClickInTheTreemapSelectsTheTensorEverywhere) {
    raise("peak", window_.panel<PeakPanel>().recorded());
    TreemapView& map = window_.panel<PeakPanel>().recorded();
    EXPECT_EQ(map.set().total, workspace_.document()->peak());
    EXPECT_EQ(window_.panel<PeakPanel>().planned().set().total, workspace_.active().plan()->peak);
    const auto largest = std::max_element(
        map.cells().begin(), map.cells().end(), [](const TreemapCell& a, const TreemapCell& b) {
            const auto size = [](const TreemapCell& c) {
                return c.solid ? std::min(c.box.width(), c.box.height()) : 0.0;
            };
            return size(a) < size(b);
        });
    ASSERT_GE(largest->node->item, 0);
    const LiveItem item = map.set().items[static_cast<std::size_t>(largest->node->item)];
    QTest::mouseClick(&map, Qt::LeftButton, {}, largest->box.center().toPoint());
    EXPECT_EQ(workspace_.selection().current().storage, item.storage);
    EXPECT_EQ(workspace_.selection().current().layer, item.layer);
    const TableView& table = window_.panel<PeakPanel>().table();
    EXPECT_EQ(table.sourceOf(table.currentIndex()).row(),
              window_.panel<PeakPanel>().model().rowOf(item.storage));
    EXPECT_EQ(
        window_.panel<LayersPanel>().model().layer(window_.panel<LayersPanel>().table().sourceOf(
            window_.panel<LayersPanel>().table().currentIndex())),
        item.layer);
}

TEST_F(Views, ALayerOfTheTreeShowsWhatItHoldsOnTheTimeline) {
    TableView& table = window_.panel<LayersPanel>().table();
    LayerModel& model = window_.panel<LayersPanel>().model();
    const QModelIndex root = model.index(0, 0);
    table.setCurrentIndex(table.shown().mapFromSource(root));
    EXPECT_EQ(workspace_.selection().current().kind, Selection::Kind::Layer);
    EXPECT_EQ(workspace_.selection().current().layer, model.layer(root));
    const std::vector<core::Bytes>& held = window_.panel<TimelinePanel>().plot().held();
    const StepCurve& curve = workspace_.document()->curve;
    ASSERT_EQ(held.size(), curve.moments.size());
    EXPECT_EQ(held[curve.peakMoment].count(),
              root.siblingAtColumn(LayerModel::AtPeak).data(Qt::UserRole).toLongLong());
    workspace_.selection().selectOp(0);
    EXPECT_TRUE(window_.panel<TimelinePanel>().plot().held().empty());
}

TEST_F(Views, ShiftAndDragChooseATimeWhosePeakIsShown) {
    raise("timeline", window_.panel<TimelinePanel>().plot());
    TimelinePlot& plot = window_.panel<TimelinePanel>().plot();
    QTest::mousePress(&plot, Qt::LeftButton, Qt::ShiftModifier, {120, 100});
    QTest::mouseRelease(&plot, Qt::LeftButton, Qt::ShiftModifier, {220, 100});
    ASSERT_TRUE(workspace_.selection().range());
    EXPECT_LT(workspace_.selection().range()->begin, workspace_.selection().range()->end);
    raise("peak", window_.panel<PeakPanel>().recorded());
    EXPECT_LT(window_.panel<PeakPanel>().recorded().set().total, workspace_.document()->peak());
    EXPECT_LE(window_.panel<PeakPanel>().recorded().set().begin,
              workspace_.selection().range()->end);
    raise("timeline", window_.panel<TimelinePanel>().plot());
    QTest::mouseClick(&plot, Qt::LeftButton, Qt::ShiftModifier, {300, 100});
    EXPECT_FALSE(workspace_.selection().range());
}

TEST_F(Views, AnotherSessionLiesBesideThisOne) {
    TimelinePlot& plot = window_.panel<TimelinePanel>().plot();
    const QStringList before = legendOf(window_.panel<TimelinePanel>());
    workspace_.loader().setRecords({QString::fromStdString(kSample)});
    ASSERT_TRUE(QTest::qWaitFor([&] { return workspace_.loader().other() != nullptr; }, 120'000));
    const Document& other = *workspace_.loader().other();
    EXPECT_NEAR(plot.highestOther(), workspace_.document()->size.value(other.peak()), 1e-9);
    EXPECT_EQ(legendOf(window_.panel<TimelinePanel>()).size(), before.size() + 1);
    raise("peak", window_.panel<PeakPanel>().recorded());
    EXPECT_EQ(window_.panel<PeakPanel>().other().set().total, other.peak());
    const LayerModel& layers = window_.panel<LayersPanel>().model();
    EXPECT_EQ(layers.index(0, LayerModel::Difference).data(kRawRole).toLongLong(), 0);
    workspace_.loader().setRecords({});
    EXPECT_EQ(plot.highestOther(), 0);
    EXPECT_EQ(legendOf(window_.panel<TimelinePanel>()), before);
    EXPECT_TRUE(window_.panel<PeakPanel>().other().isHidden());
}

TEST_F(Views, TheMapIsPackedInTheBackgroundAndRecordedOnRequest) {
    raise("map", window_.panel<MapPanel>().plot());
    MapPlot& plot = window_.panel<MapPanel>().plot();
    ASSERT_TRUE(QTest::qWaitFor([&] { return plot.map() != nullptr; }, 120'000));
    EXPECT_EQ(plot.map()->livePeak, workspace_.active().plan()->peak);
    EXPECT_TRUE(plot.title().startsWith(workspace_.active().plan()->planner));
    const auto block = std::find_if(
        plot.map()->blocks.begin(), plot.map()->blocks.end(), [](const MapBlock& each) {
            return each.storage != core::kNone && each.end - each.first > 40;
        });
    ASSERT_NE(block, plot.map()->blocks.end());
    EXPECT_EQ(plot.blockAt(plot.pixelOf(*block)), &*block);
    QTest::mouseClick(&plot, Qt::LeftButton, {}, plot.pixelOf(*block).toPoint());
    EXPECT_EQ(workspace_.selection().current().storage, block->storage);
    window_.panel<MapPanel>().recordedButton().click();
    ASSERT_TRUE(QTest::qWaitFor([&] { return plot.map() && plot.map()->recorded; }, 120'000));
    EXPECT_GT(plot.map()->wasted(), 0.0);
}

class ViewsWithoutAStep : public samples::OnLogs {};
HW_WITH_DATA(ViewsWithoutAStep, "torch-snapshot", "simrd");

TEST_P(ViewsWithoutAStep, SayWhyTheyHaveNothingToShow) {
    Workspace workspace;
    ASSERT_TRUE(workspace.loader().openNow(GetParam() + "/torch-snapshot/empty-cache.pickle.gz", {},
                                           std::nullopt));
    const auto shows = [](Panel& panel, const char* text) {
        panel.resize(800, 400);
        panel.show();
        const QList<QLabel*> labels = panel.findChildren<QLabel*>();
        return std::any_of(labels.begin(), labels.end(), [&](const QLabel* label) {
            return label->isVisible() && label->text().contains(QLatin1String(text));
        });
    };
    WhatIfPanel whatIf(workspace);
    EXPECT_TRUE(shows(whatIf, "holds no step"));
    EXPECT_FALSE(whatIf.plot().isVisible());
    ComparePanel compare(workspace);
    EXPECT_TRUE(shows(compare, "holds no step"));
    PlanPanel plan(workspace);
    EXPECT_TRUE(shows(plan, "holds no step"));
    ASSERT_TRUE(workspace.loader().openNow(logPath("unet"), {}, std::nullopt));
    LayersPanel layers(workspace);
    EXPECT_TRUE(shows(layers, "No layers were recorded"));
}

TEST_F(Views, TablesFilterCopyAndExport) {
    raise("plan", *window_.panel<PlanPanel>().table().viewport());
    TableView& table = window_.panel<PlanPanel>().table();
    const int all = table.shown().rowCount();
    ASSERT_GT(all, 2);
    table.filterBox()->setText(QStringLiteral("encoder.layers.1"));
    EXPECT_LT(table.shown().rowCount(), all);
    EXPECT_GT(table.shown().rowCount(), 0);
    table.filterBox()->clear();
    table.setCurrentIndex(table.shown().index(0, 0));
    QTest::keyClick(&table, Qt::Key_C, Qt::ControlModifier);
    const QStringList lines = QGuiApplication::clipboard()->text().split(QLatin1Char('\n'));
    ASSERT_EQ(lines.size(), 2) << "the headers and the row";
    EXPECT_TRUE(lines[1].startsWith(table.shown().index(0, 0).data().toString()));
    QTemporaryDir folder;
    ASSERT_TRUE(table.exportCsv(folder.filePath(QStringLiteral("plan.csv"))));
    QFile file(folder.filePath(QStringLiteral("plan.csv")));
    ASSERT_TRUE(file.open(QIODevice::ReadOnly));
    qsizetype rows = 0;
    for (int row = 0; row < all; ++row)
        rows += 1 + table.shown().rowCount(table.shown().index(row, 0));
    EXPECT_EQ(file.readAll().count('\n'), rows + 1);
    EXPECT_EQ(table.exportCsv(folder.filePath(QStringLiteral("no/such/plan.csv"))).error().code,
              core::ErrorCode::BadInput);
}

class MapPlotDetailOnLogs : public samples::OnLogs {};
HW_WITH_LOGS(MapPlotDetailOnLogs);

TEST_P(MapPlotDetailOnLogs, FiftyThousandBlocksPaintNoMoreThanThePixelsAsk) {
    const DocumentPointer document = *loadDocument(logPath("unet"));
    const auto moments = static_cast<std::int32_t>(document->curve.moments.size());
    auto map = std::make_shared<AddressMap>();
    constexpr int kBlocks = 50'000;
    map->span = document->peak();
    map->livePeak = document->peak();
    const std::int64_t bytes = map->span.count() / kBlocks;
    for (int i = 0; i < kBlocks; ++i) {
        const std::int32_t first = i / (kBlocks / moments + 1);
        map->blocks.push_back({first, first + 1, i * bytes, bytes,
                               bandOf(core::Category::Activation), core::kNone, core::kNone});
    }
    MapPlot plot;
    plot.resize(800, 500);
    plot.show(document, nullptr, map);
    plot.replot(QCustomPlot::rpImmediateRefresh);
    const std::size_t all = plot.painted();
    EXPECT_GT(all, 100U);
    EXPECT_LE(all, 50'000U);
    plot.yAxis->setRange(0, plot.yAxis->range().upper / 100);
    plot.replot(QCustomPlot::rpImmediateRefresh);
    EXPECT_LE(plot.painted(), kBlocks / 50U) << "what is not seen is not painted";
    EXPECT_GT(plot.painted(), 0U);
}

}  // namespace
}  // namespace hw::viewer

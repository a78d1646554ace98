// SPDX-License-Identifier: GPL-3.0-or-later
// The memory trace in the window and as pictures.
#include <gtest/gtest.h>

#include <QFile>
#include <QImage>
#include <QTemporaryDir>
#include <QTest>
#include <algorithm>

#include "planners/plan_with.h"
#include "tests/models/test_graphs.h"
#include "viewer/panels/main_window.h"
#include "viewer/panels/timeline_panel.h"
#include "viewer/panels/trace_panel.h"
#include "viewer/plots/theme.h"
#include "viewer/viewer.h"

namespace hw::viewer {
namespace {

int drawnPixels(const QImage& image, const QColor& colour) {
    int count = 0;
    for (int y = 0; y < image.height(); ++y)
        for (int x = 0; x < image.width(); ++x) count += image.pixelColor(x, y) == colour;
    return count;
}

class Trace : public samples::OnLogs {
protected:
    void show(const char* log, const char* planner, double ratio) {
        setTheme(false);
        ASSERT_TRUE(workspace_.loader().openNow(logPath(log), {}, std::nullopt));
        if (*planner != '\0') {
            const Document& document = *workspace_.document();
            const auto bytes = static_cast<double>(document.peak().count()) * ratio;
            plan_ =
                *computePlan(document, planner, core::Bytes(static_cast<std::int64_t>(bytes)), 2);
            ASSERT_TRUE(plan_->ok()) << plan_->reason.toStdString();
            workspace_.selectPlanners({});  // nobody plans while the test looks
            workspace_.choose(plan_);
        }
        panel_.resize(1000, 600);
        panel_.show();
        ASSERT_TRUE(QTest::qWaitForWindowExposed(&panel_));
        plot_.replot(QCustomPlot::rpImmediateRefresh);
    }
    const TraceBar* first(core::ActionKind kind) const {
        const std::vector<TraceBar>& bars = plot_.trace().bars;
        const auto found = std::find_if(bars.begin(), bars.end(), [&](const TraceBar& bar) {
            return bar.by == kind && bar.end - bar.begin > 1;
        });
        return found == bars.end() ? nullptr : &*found;
    }
    Workspace workspace_;
    TracePanel panel_{workspace_};
    TracePlot& plot_ = panel_.plot();
    PlanPointer plan_;
};
HW_WITH_LOGS(Trace);

TEST_P(Trace, ShowsThePlanAndNamesWhatIsUnderTheCursor) {
    show("resnet32", "dtr:eqclass", 0.5);
    const QString budget = test::dataName(GetParam()) == "Public" ? QStringLiteral("5.03 GB")
                                                                  : QStringLiteral("0.63 GB");
    EXPECT_TRUE(
        plot_.title().startsWith(QStringLiteral("dtr:eqclass · budget %1 (50 %)").arg(budget)))
        << plot_.title().toStdString();
    EXPECT_TRUE(plot_.title().contains(overheadText(plan_->overhead)));
    const TraceBar* bar = first(core::ActionKind::Recompute);
    ASSERT_NE(bar, nullptr);
    const core::StorageIndex storage = plot_.trace().rows[bar->row];
    const QString text = plot_.describe(plot_.pixelOf(*bar));
    const core::TrainingGraph& graph = workspace_.document()->graph;
    EXPECT_TRUE(text.contains(QStringLiteral("storage %1 ").arg(storage))) << text.toStdString();
    EXPECT_TRUE(text.contains(opText(graph, graph.storages[storage].creator)));
    EXPECT_TRUE(text.contains(workspace_.document()->size.text(graph.storages[storage].bytes)));
    EXPECT_TRUE(
        text.contains(QStringLiteral("computed %1 times").arg(plot_.trace().computed[bar->row])));
    EXPECT_TRUE(text.contains(QStringLiteral("rematerialized")));
    EXPECT_TRUE(plot_.describe({2, 2}).isEmpty()) << "outside of the rows";
    EXPECT_EQ(panel_.legend().items().size(), 3U);
}

TEST_P(Trace, BarsHaveTheirColoursAndGapsAreBlank) {
    show("resnet32", "dtr:eqclass", 0.5);
    const TraceBar* again = first(core::ActionKind::Recompute);
    ASSERT_NE(again, nullptr);
    // The first stretch of the same storage, and the gap in between.
    const TraceBar& kept = plot_.trace().bars[plot_.trace().firstBar[again->row]];
    ASSERT_EQ(kept.by, core::ActionKind::Compute);
    plot_.xAxis->setRange(plot_.xAxis->range().lower, plot_.xAxis->range().upper);
    plot_.yAxis->setRange(again->row - 2, again->row + 4);  // rows with room
    const QImage image = plot_.toPixmap().toImage();
    const auto at = [&](const QPointF& pixel) { return image.pixelColor(pixel.toPoint()); };
    EXPECT_EQ(at(plot_.pixelOf(*again)), theme().lifetime(core::ActionKind::Recompute));
    EXPECT_EQ(at(plot_.pixelOf({kept.row, kept.begin, kept.end, core::ActionKind::Compute})),
              theme().lifetime(core::ActionKind::Compute));
    EXPECT_EQ(
        at(plot_.pixelOf({kept.row, kept.end, (&kept + 1)->begin, core::ActionKind::Compute})),
        theme().panel);
}

TEST_P(Trace, AxesZoomAndSelection) {
    show("unet", "dtr:eqclass", 0.7);
    EXPECT_NEAR(plot_.xAxis->range().upper, milliseconds(plan_->time), 1e-9);
    EXPECT_DOUBLE_EQ(plot_.yAxis->range().upper, static_cast<double>(plot_.trace().rows.size()));
    for (QToolButton* button : panel_.header()->findChildren<QToolButton*>()) button->click();
    EXPECT_DOUBLE_EQ(plot_.xAxis->range().upper, plot_.trace().steps());
    const double bytes = static_cast<double>(plot_.trace().below.back().count());
    EXPECT_NEAR(plot_.yAxis->range().upper, bytes / workspace_.document()->size.bytes, 1e-6);
    plot_.zoom(4);
    EXPECT_NEAR(plot_.xAxis->range().size(), plot_.trace().steps() / 4.0, 1e-6);
    plot_.xAxis->setRange(-1e6, 1e6);
    EXPECT_DOUBLE_EQ(plot_.xAxis->range().upper, plot_.trace().steps());

    const TraceBar* bar = first(core::ActionKind::Recompute);
    ASSERT_NE(bar, nullptr);
    const QPoint pixel = plot_.pixelOf(*bar).toPoint();
    QTest::mouseClick(&plot_, Qt::LeftButton, {}, pixel);
    const auto step = static_cast<std::int32_t>(plot_.xAxis->pixelToCoord(pixel.x()));
    EXPECT_EQ(workspace_.selection().op(), plot_.trace().ops[step]);
}

TEST_P(Trace, WithoutAPlanTheRecordedStepIsShown) {
    show("unet", "", 1);
    EXPECT_TRUE(plot_.title().startsWith(QStringLiteral("recorded step")));
    EXPECT_FALSE(plot_.trace().bars.empty());
    EXPECT_EQ(first(core::ActionKind::Recompute), nullptr);
    EXPECT_EQ(panel_.legend().items().size(), 2U);
}

class TraceInTheWindowOnLogs : public samples::OnLogs {};
HW_WITH_LOGS(TraceInTheWindowOnLogs);

TEST_P(TraceInTheWindowOnLogs, FollowsThePlanThatWasChosen) {
    MainWindow window;
    window.resize(1400, 900);
    window.show();
    ASSERT_TRUE(QTest::qWaitForWindowExposed(&window));
    ASSERT_TRUE(window.workspace().loader().openNow(logPath("unet"), {}, std::nullopt));
    window.workspace().selectPlanners({QStringLiteral("chen-greedy"), QStringLiteral("dtr:lru")});
    window.workspace().setBudgetRatio(0.8);
    ASSERT_TRUE(QTest::qWaitFor([&] { return !window.workspace().busy(); }, 120'000));
    EXPECT_FALSE(window.panel<TimelinePanel>().plot().visibleRegion().isEmpty());
    EXPECT_TRUE(window.panel<TracePanel>().plot().visibleRegion().isEmpty())
        << "behind the timeline";
    auto* dock = window.findChild<QDockWidget*>(QStringLiteral("trace"));
    ASSERT_NE(dock, nullptr);
    dock->raise();
    ASSERT_TRUE(QTest::qWaitFor(
        [&] { return !window.panel<TracePanel>().plot().visibleRegion().isEmpty(); }));
    EXPECT_GT(window.panel<TracePanel>().plot().trace().steps(), 0);
    for (const PlanRow& row : window.workspace().plans().rows(window.workspace().budget())) {
        ASSERT_TRUE(row.plan && row.plan->ok()) << row.planner.toStdString();
        window.workspace().choose(row.plan);
        EXPECT_TRUE(window.panel<TracePanel>().plot().title().startsWith(row.planner));
    }
}

class TraceShotOnLogs : public samples::OnLogs {};
HW_WITH_LOGS(TraceShotOnLogs);

TEST_P(TraceShotOnLogs, PicturesOfAPlan) {
    QTemporaryDir folder;
    ShotOptions options;
    options.session = logPath("unet");
    options.view = "trace";
    options.width = 1000;
    options.height = 600;
    {
        const core::Result<DocumentPointer> document = loadDocument(options.session);
        ASSERT_TRUE(document);
        planners::PlanRequest request;
        request.budget = core::Bytes((*document)->peak().count() / 10 * 7);
        const auto outcome = planners::planWith("dtr:eqclass", (*document)->graph, request);
        ASSERT_TRUE(outcome && outcome->plan);
        options.plans = {folder.filePath("p.plan.json").toStdString()};
        ASSERT_TRUE(core::writePlanFile(*outcome->plan, options.plans[0]));
    }
    for (const bool bytes : {false, true}) {
        options.byBytes = options.bySteps = bytes;
        options.output = folder.filePath("t.png").toStdString();
        ASSERT_TRUE(shot(options));
        const QImage image(QString::fromStdString(options.output));
        EXPECT_GT(drawnPixels(image, theme().lifetime(core::ActionKind::Compute)), 2000);
        EXPECT_GT(drawnPixels(image, theme().lifetime(core::ActionKind::Recompute)), 500);
    }
    for (const char* name : {"t.svg", "t.pdf"}) {
        options.output = folder.filePath(QLatin1String(name)).toStdString();
        ASSERT_TRUE(shot(options));
        QFile file(QString::fromStdString(options.output));
        ASSERT_TRUE(file.open(QIODevice::ReadOnly));
        const QByteArray text = file.readAll();
        EXPECT_GT(text.size(), 5000);
        EXPECT_FALSE(text.contains("<image")) << "vectors only";
    }
    options.view = "timeline";
    const auto refused = shot(options);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, core::ErrorCode::Usage);
    options.planners = {"magic"};
    ASSERT_FALSE(shot(options));
}

}  // namespace
}  // namespace hw::viewer

// SPDX-License-Identifier: GPL-3.0-or-later
// A real window: open a log, look, move the budget, choose a plan, export.
#include <gtest/gtest.h>

#include <QAction>
#include <QDialog>
#include <QImage>
#include <QLineEdit>
#include <QPointer>
#include <QTemporaryDir>
#include <QTest>
#include <cstdlib>

#include "planners/program/linear_program.h"
#include "tests/gui/patience.h"
#include "tests/models/test_graphs.h"
#include "viewer/export/picture.h"
#include "viewer/panels/compare_panel.h"
#include "viewer/panels/main_window.h"
#include "viewer/panels/timeline_panel.h"
#include "viewer/panels/whatif_panel.h"
#include "viewer/plots/theme.h"

namespace hw::viewer {
namespace {

const QStringList kQuick{QStringLiteral("none"), QStringLiteral("chen-greedy"),
                         QStringLiteral("dtr:eqclass")};

class Window : public ::testing::Test {
protected:
    void SetUp() override {
        window_.setLight(false);
        // Those that plan at once; what takes seconds has a test of its own.
        window_.workspace().selectPlanners(kQuick);
        window_.resize(1400, 900);
        window_.show();
        ASSERT_TRUE(QTest::qWaitForWindowExposed(&window_));
    }
    void open(const std::string& path) {
        window_.open(QString::fromStdString(path));
        ASSERT_TRUE(
            QTest::qWaitFor([&] { return window_.workspace().document() != nullptr; }, kPatience));
        ASSERT_TRUE(QTest::qWaitFor([&] { return window_.workspace().active().plan() != nullptr; },
                                    kPatience));
    }
    bool idle() {
        return QTest::qWaitFor([&] { return !window_.workspace().busy(); }, kPatience);
    }
    MainWindow window_;
};

class WindowOnLogs : public Window, public ::testing::WithParamInterface<std::string> {
protected:
    void open(const char* name) { Window::open(GetParam() + "/simrd/" + name + ".log.gz"); }
};
HW_WITH_LOGS(WindowOnLogs);

// What the window shows of resnet32.
struct Shown {
    double gigabytes;
    const char *peak, *time;
};
Shown shownOf(const std::string& folder) {
    return test::dataName(folder) == "Public" ? Shown{10.06, "10.06", "291.9"}
                                              : Shown{1.27, "1.27", "92.32"};
}

TEST_F(Window, EmptyStateSaysWhatToDoAndWhatWentWrong) {
    EXPECT_TRUE(window_.emptyState().isVisible());
    EXPECT_FALSE(window_.panel<TimelinePanel>().isVisible());
    window_.open(QStringLiteral("/nonexistent/run.hws"));
    const auto* problem = window_.emptyState().findChild<QLabel*>(QStringLiteral("problem"));
    ASSERT_NE(problem, nullptr);
    ASSERT_TRUE(QTest::qWaitFor([&] { return problem->isVisible(); }, kPatience));
    EXPECT_TRUE(problem->text().contains(QStringLiteral("run.hws")));
    QTest::keyClick(&window_, Qt::Key_Right);  // keys without a document do nothing
    QTest::keyClick(&window_, Qt::Key_P);
    EXPECT_EQ(window_.workspace().document(), nullptr);
}

TEST_P(WindowOnLogs, OpensALogAndShowsItsPeak) {
    open("resnet32");
    EXPECT_FALSE(window_.emptyState().isVisible());
    EXPECT_TRUE(window_.panel<TimelinePanel>().isVisible());
    const Shown shown = shownOf(GetParam());
    EXPECT_NEAR(window_.panel<TimelinePanel>().plot().highestDrawn(), shown.gigabytes, 0.01);
    const auto begins = [&](int figure, const char* text) {
        return window_.panel<ComparePanel>().figure(figure).startsWith(QLatin1String(text) +
                                                                       QStringLiteral(" → "));
    };
    EXPECT_TRUE(begins(0, shown.peak)) << window_.panel<ComparePanel>().figure(0).toStdString();
    EXPECT_TRUE(begins(1, shown.time)) << window_.panel<ComparePanel>().figure(1).toStdString();
    EXPECT_EQ(window_.panel<ComparePanel>().figure(3), QStringLiteral("no bound yet"));
}

TEST_P(WindowOnLogs, ZoomedOutOrNarrowThePeakStays) {
    open("treelstm");
    TimelinePlot& plot = window_.panel<TimelinePanel>().plot();
    const Document& document = *window_.workspace().document();
    const double peak = document.size.value(document.peak());
    EXPECT_DOUBLE_EQ(plot.highestDrawn(), peak);
    window_.resize(900, 700);
    QCoreApplication::processEvents();
    EXPECT_DOUBLE_EQ(plot.highestDrawn(), peak);
    const QCPRange whole = plot.visibleTime();
    QTest::keyClick(&window_, Qt::Key_Plus);
    EXPECT_LT(plot.visibleTime().size(), whole.size());
    QTest::keyClick(&window_, Qt::Key_0);
    EXPECT_DOUBLE_EQ(plot.visibleTime().size(), whole.size());
    plot.pan(-5);
    EXPECT_DOUBLE_EQ(plot.visibleTime().lower, 0);
}

TEST_P(WindowOnLogs, MovingTheBudgetBringsAnotherPlan) {
    open("unet");
    ASSERT_TRUE(idle());
    const PlanPointer before = window_.workspace().active().plan();
    BudgetSlider& slider = window_.panel<WhatIfPanel>().slider();
    QTest::keyClick(&window_, Qt::Key_B);
    EXPECT_TRUE(slider.hasFocus());
    for (int i = 0; i < 15; ++i) QTest::keyClick(&slider, Qt::Key_Right);
    ASSERT_TRUE(
        QTest::qWaitFor([&] { return window_.workspace().budgetRatio() > 0.74; }, kPatience));
    ASSERT_TRUE(idle());
    const PlanPointer after = window_.workspace().active().plan();
    ASSERT_TRUE(after);
    EXPECT_NE(after, before);
    EXPECT_EQ(after->budget, window_.workspace().budget());
    EXPECT_LE(after->peak, window_.workspace().budget());
    EXPECT_LT(after->overhead, before->overhead);
    EXPECT_TRUE(window_.panel<ComparePanel>().figure(0).contains(
        window_.workspace().document()->size.number(after->peak)));
}

TEST_P(WindowOnLogs, AClickOnACurveChoosesThatPlan) {
    open("unet");
    ASSERT_TRUE(idle());
    FrontierPlot& plot = window_.panel<WhatIfPanel>().plot();
    ASSERT_TRUE(QTest::qWaitFor([&] { return plot.graphCount() > 1; }, kPatience));
    const std::vector<PlanPointer> points =
        window_.workspace().plans().frontier(QStringLiteral("dtr:eqclass"));
    ASSERT_GT(points.size(), 3U);
    const PlanPointer wanted = points.back();
    const double share = ratio(wanted->budget, window_.workspace().document()->peak());
    QPoint pixel;
    const auto atPixel = [&] {  // other planners' points move the axes until they are drawn
        pixel = {static_cast<int>(plot.xAxis->coordToPixel(share * 100)),
                 static_cast<int>(plot.yAxis->coordToPixel((wanted->overhead - 1) * 100))};
        return plot.planAt(pixel);
    };
    ASSERT_TRUE(QTest::qWaitFor([&] { return atPixel() == wanted; }, kPatience));
    QTest::mouseClick(&plot, Qt::LeftButton, {}, pixel);
    EXPECT_EQ(window_.workspace().active().plan(), wanted);
    EXPECT_EQ(window_.workspace().budget(), wanted->budget);
    ASSERT_TRUE(idle());
    EXPECT_EQ(window_.workspace().active().plan(), wanted)
        << "other planners' results must not take over";
}

TEST_P(WindowOnLogs, TickedPlannersHaveCurvesAndTheBoundIsDrawn) {
    window_.workspace().selectPlanners(kQuick + QStringList{QStringLiteral("highwater")});
    open("resnet32");
    ASSERT_TRUE(idle());
    FrontierPlot& plot = window_.panel<WhatIfPanel>().plot();
    ASSERT_TRUE(QTest::qWaitFor([&] { return plot.drawn().size() == 4; }, kPatience));
    EXPECT_EQ(plot.drawn().back(), QStringLiteral("highwater")) << "ours on top";
    EXPECT_EQ(plot.boundDrawn(), planners::haveSolver()) << "without one no bound is known";
    for (QCheckBox* box : window_.panel<WhatIfPanel>().planners().boxes()) {
        const bool usual = window_.workspace().selectedPlanners().contains(box->objectName());
        EXPECT_EQ(box->isChecked(), usual) << box->objectName().toStdString();
        if (box->objectName() == QLatin1String("dtr:lru") ||
            box->objectName() == QLatin1String("highwater"))
            box->click();
    }
    ASSERT_TRUE(idle());
    ASSERT_TRUE(QTest::qWaitFor([&] { return plot.drawn().contains(QStringLiteral("dtr:lru")); },
                                kPatience));
    EXPECT_FALSE(plot.drawn().contains(QStringLiteral("highwater")));
}

TEST_P(WindowOnLogs, CursorAndArrowsListWhatIsLive) {
    open("resnet32");
    TimelinePlot& plot = window_.panel<TimelinePanel>().plot();
    EXPECT_FALSE(plot.readout().content());
    QTest::keyClick(&window_, Qt::Key_Right);
    ASSERT_TRUE(plot.readout().content());
    EXPECT_EQ(plot.readout().content()->lines.size(), 7U);
    EXPECT_TRUE(plot.readout().content()->subtitle.contains(
        QLatin1String(shownOf(GetParam()).peak) + QStringLiteral(" GB")));
    const double peakTime = plot.readout().content()->milliseconds;
    QTest::keyClick(&window_, Qt::Key_Left);
    EXPECT_LT(plot.readout().content()->milliseconds, peakTime);
    QTest::mouseMove(&plot, QPoint(plot.width() / 2, plot.height() / 3));
    ASSERT_TRUE(QTest::qWaitFor([&] { return plot.readout().content()->milliseconds > peakTime; },
                                kPatience));
}

// Share of the pixels that are of clearly another colour.
double differing(const QImage& a, const QImage& b) {
    if (a.size() != b.size()) return 1;
    std::int64_t others = 0;
    for (int y = 0; y < a.height(); ++y)
        for (int x = 0; x < a.width(); ++x) {
            const QColor one = a.pixelColor(x, y), two = b.pixelColor(x, y);
            others += std::abs(one.red() - two.red()) + std::abs(one.green() - two.green()) +
                          std::abs(one.blue() - two.blue()) >
                      90;
        }
    return static_cast<double>(others) / (static_cast<double>(a.width()) * a.height());
}

TEST_P(WindowOnLogs, TheScreenShowsWhatPicturesShow) {
    open("resnet32");
    ASSERT_TRUE(idle());
    TimelinePlot& plot = window_.panel<TimelinePanel>().plot();
    const auto screen = [&] {
        QTest::qWait(20);  // a queued replot
        return plot.grab().toImage();
    };
    const auto picture = [&] {
        Plot::setVectorPainting(true);
        const QImage drawn = plot.grab().toImage();
        Plot::setVectorPainting(false);
        return drawn;
    };
    window_.setLight(false);
    QTest::qWait(200);                // a legend that had two rows for a moment is back to one
    constexpr double kEdges = 0.035;  // and letters: drawn as vectors they are smoothed
    const QImage whole = screen();
    EXPECT_LT(differing(whole, picture()), kEdges);
    plot.zoom(6);
    const QImage closer = screen();
    EXPECT_GT(differing(whole, closer), 0.1);
    EXPECT_LT(differing(closer, picture()), kEdges);

    // The box under the pointer comes and goes without a trace.
    QTest::mouseMove(&plot, QPoint(1, 1));  // where it is already, the pointer would not move
    QTest::mouseMove(&plot, QPoint(plot.width() / 2, plot.height() / 3));
    ASSERT_TRUE(QTest::qWaitFor([&] { return plot.readout().content().has_value(); }, kPatience));
    const QImage under = screen();
    EXPECT_GT(differing(closer, under), 0.002);
    EXPECT_LT(differing(under, picture()), kEdges);
    QEvent leave(QEvent::Leave);
    QCoreApplication::sendEvent(&plot, &leave);
    EXPECT_EQ(screen(), closer);

    window_.setLight(true);
    QTest::qWait(200);  // another style sheet is laid out anew
    EXPECT_LT(differing(screen(), picture()), kEdges);
    plot.resetZoom();
    window_.setLight(false);
    QTest::qWait(200);
    EXPECT_EQ(screen().size(), whole.size());
    EXPECT_EQ(screen(), whole);
}

TEST_P(WindowOnLogs, ThemesAndExport) {
    open("resnet32");
    QTemporaryDir folder;
    const QString file = folder.filePath(QStringLiteral("w.png"));
    ASSERT_TRUE(savePictureOf(window_, file.toStdString(), 1));
    const QImage dark(file);
    EXPECT_EQ(dark.size(), window_.size());
    QTest::keyClick(&window_, Qt::Key_T);
    EXPECT_TRUE(theme().light);
    ASSERT_TRUE(savePictureOf(window_, file.toStdString(), 1));
    const QImage light(file);
    EXPECT_NE(dark, light);
    EXPECT_EQ(
        savePictureOf(window_, folder.filePath(QStringLiteral("no/such/w.png")).toStdString(), 1)
            .error()
            .code,
        core::ErrorCode::BadInput);
}

TEST_F(Window, ThePaletteDoesWhatIsTyped) {
    QTest::keyClick(&window_, Qt::Key_P, Qt::ControlModifier | Qt::ShiftModifier);
    const QPointer<QDialog> palette = window_.findChild<QDialog*>(QStringLiteral("commandPalette"));
    ASSERT_TRUE(palette && palette->isVisible());
    auto* typed = palette->findChild<QLineEdit*>();
    QTest::keyClicks(typed, QStringLiteral("thm"));
    QTest::keyClick(typed, Qt::Key_Return);
    EXPECT_TRUE(QTest::qWaitFor([] { return theme().light; }, kPatience));
    EXPECT_FALSE(palette) << "it is gone once it has been used";
}

}  // namespace
}  // namespace hw::viewer

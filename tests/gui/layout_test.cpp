// SPDX-License-Identifier: GPL-3.0-or-later
// Where the views are, in pixels: on the first start, on the next ones, and one alone.
#include <gtest/gtest.h>

#include <QDockWidget>
#include <QHeaderView>
#include <QLabel>
#include <QScreen>
#include <QSettings>
#include <QStatusBar>
#include <QTemporaryDir>
#include <QTest>
#include <QToolBar>
#include <QToolButton>
#include <map>

#include "tests/gui/patience.h"
#include "viewer/panels/compare_panel.h"
#include "viewer/panels/layers_panel.h"
#include "viewer/panels/main_window.h"
#include "viewer/panels/timeline_panel.h"
#include "viewer/panels/whatif_panel.h"
#include "viewer/plots/colours.h"
#include "viewer/plots/theme.h"

namespace hw::viewer {
namespace {

using Places = std::map<QString, QRect>;

// Of what can be seen, in pixels of the window.
Places placesIn(const MainWindow& window) {
    Places places;
    for (const QDockWidget* dock : window.findChildren<QDockWidget*>())
        if (!dock->visibleRegion().isEmpty()) places[dock->objectName()] = dock->geometry();
    return places;
}

std::string text(const Places& places) {
    std::string all;
    for (const auto& [name, place] : places)
        all += name.toStdString() + " " + std::to_string(place.x()) + "," +
               std::to_string(place.y()) + " " + std::to_string(place.width()) + "x" +
               std::to_string(place.height()) + "; ";
    return all;
}

// What each view asks for at least.
std::string needs(const MainWindow& window) {
    std::string all;
    for (const QDockWidget* dock : window.findChildren<QDockWidget*>())
        if (!dock->isHidden())
            all += dock->objectName().toStdString() + " " +
                   std::to_string(dock->minimumSizeHint().width()) + "x" +
                   std::to_string(dock->minimumSizeHint().height()) + "; ";
    return all;
}

// Nothing is being computed any more, and what came of it has its place: a figure's new size asks
// for room, whose row for another height, which may change its size.
void settle(MainWindow& window) {
    EXPECT_TRUE(QTest::qWaitFor([&] { return !window.workspace().busy(); }, kPatience));
    for (int round = 0; round < 5; ++round) {
        QCoreApplication::sendPostedEvents();
        QCoreApplication::processEvents();
    }
}

class Layout : public ::testing::TestWithParam<QSize> {
protected:
    std::unique_ptr<MainWindow> start(const QString& session = QStringLiteral(SAMPLE_SESSION)) {
        auto window = std::make_unique<MainWindow>();
        window->workspace().selectPlanners({QStringLiteral("none")});
        window->useMemory(WindowMemory(std::make_unique<QSettings>(
            folder_.filePath(QStringLiteral("window.ini")), QSettings::IniFormat)));
        if (first_) window->resize(GetParam());
        first_ = false;
        window->show();
        EXPECT_TRUE(QTest::qWaitForWindowExposed(window.get()));
        window->open(session);
        EXPECT_TRUE(
            QTest::qWaitFor([&] { return window->workspace().document() != nullptr; }, kPatience));
        QTest::qWait(100);  // the layout settles
        return window;
    }
    QTemporaryDir folder_;
    bool first_ = true;
};

TEST_P(Layout, ARestartChangesNoPixel) {
    Places before;
    {
        const auto window = start();
        auto* side = window->findChild<QDockWidget*>(QStringLiteral("layers"));
        auto* upper = window->findChild<QDockWidget*>(QStringLiteral("timeline"));
        auto* lower = window->findChild<QDockWidget*>(QStringLiteral("whatif"));
        window->resizeDocks({side}, {side->width() + 37}, Qt::Horizontal);  // by hand
        window->resizeDocks({upper, lower}, {upper->height() + 11, lower->height() - 11},
                            Qt::Vertical);
        window->workspace().setBudgetRatio(0.7);
        settle(*window);
        before = placesIn(*window);
        window->close();
    }
    ASSERT_GE(before.size(), 4U) << text(before);
    for (int again = 0; again < 3; ++again) {
        const auto window = start();
        EXPECT_EQ(window->size(), GetParam());
        EXPECT_EQ(placesIn(*window), before) << "start " << again << "\n"
                                             << text(placesIn(*window)) << "\nbefore\n"
                                             << text(before);
        EXPECT_NEAR(window->workspace().budgetRatio(), 0.7, 1e-6);
        window->close();
    }
}

TEST_P(Layout, TheTimelineLeadsAndNothingIsOutsideTheWindow) {
    const auto window = start();
    EXPECT_EQ(window->size(), GetParam()) << "the views need no more: " << needs(*window);
    const Places places = placesIn(*window);
    EXPECT_GE(places.at(QStringLiteral("timeline")).height(), window->height() * 2 / 5)
        << text(places);
    const TimelinePlot& plot = window->panel<TimelinePanel>().plot();
    EXPECT_GE(plot.axisRect()->height(), plot.height() * 45 / 100)
        << "the curves have most of " << plot.height() << " pixels";
    for (const auto& [name, place] : places)
        EXPECT_TRUE(window->rect().contains(place)) << name.toStdString() << text(places);
    for (const QWidget* each : window->findChildren<QToolBar*>())
        EXPECT_TRUE(each->isHidden() || window->rect().contains(each->geometry()));
}

// However small the window is: rows of tables, no figure or column that is cut off.
TEST_P(Layout, TablesHaveRowsAndFiguresAreWhole) {
    const auto window = start();
    window->workspace().setBudgetRatio(0.7);
    settle(*window);
    const TableView& compared = window->panel<ComparePanel>().table();
    const QRect second = compared.visualRect(compared.model()->index(1, 0));
    EXPECT_TRUE(compared.viewport()->rect().contains(second.adjusted(1, 1, -1, -1)))
        << second.bottom() << " of " << compared.viewport()->height();
    for (const TableView* table :
         std::initializer_list<const TableView*>{&compared, &window->panel<LayersPanel>().table()})
        EXPECT_LE(table->header()->length(), table->viewport()->width()) << needs(*window);
    for (const QLabel* each : window->findChildren<QLabel*>(QStringLiteral("figure")))
        EXPECT_TRUE(each->visibleRegion().isEmpty() || each->width() >= each->sizeHint().width())
            << each->text().toStdString();
}

TEST_P(Layout, TheMenuOfWhatTheToolBarHasNoRoomForIsSeen) {
    for (const bool light : {true, false}) {
        const auto window = start();
        window->setLight(light);
        QTest::qWait(20);
        auto* more = window->findChild<QToolBar*>(QStringLiteral("titleStrip"))
                         ->findChild<QToolButton*>(QStringLiteral("qt_toolbar_ext_button"));
        EXPECT_EQ(more->isVisible(), window->width() < 1280);
        if (!more->isVisible()) continue;
        const QImage drawn = more->grab().toImage();
        int ink = 0;
        for (int y = 0; y < drawn.height(); ++y)
            for (int x = 0; x < drawn.width(); ++x)
                ink += contrast(drawn.pixelColor(x, y), theme().raised) > 4;
        EXPECT_GT(ink, 10) << (light ? "light" : "dark");
    }
}

TEST_P(Layout, OneKeyMaximisesAViewAndBringsAllBack) {
    const auto window = start();
    const Places before = placesIn(*window);
    QTest::keyClick(window.get(), Qt::Key_B);  // What if has the keys
    QTest::keyClick(&window->panel<WhatIfPanel>().slider(), Qt::Key_M);
    QTest::qWait(50);
    const Places alone = placesIn(*window);
    ASSERT_EQ(alone.size(), 1U) << text(alone);
    EXPECT_GE(alone.at(QStringLiteral("whatif")).height(), window->height() * 8 / 10);
    EXPECT_GE(alone.at(QStringLiteral("whatif")).width(), window->width() - 4);
    QTest::keyClick(&window->panel<WhatIfPanel>().slider(), Qt::Key_M);
    QTest::qWait(50);
    EXPECT_EQ(placesIn(*window), before) << text(placesIn(*window)) << "\n" << text(before);
}

INSTANTIATE_TEST_SUITE_P(Sizes, Layout,
                         ::testing::Values(QSize(1440, 868), QSize(1280, 688), QSize(1920, 1048),
                                           QSize(960, 508)));  // 1920 x 1080 at scale 2

TEST(FirstSize, FitsTheScreen) {
    EXPECT_EQ(firstSize({1920, 1080}), QSize(1680, 1000));
    EXPECT_EQ(firstSize({1440, 900}), QSize(1440, 868));
    EXPECT_EQ(firstSize({960, 540}), QSize(960, 508));
    const MainWindow window;
    const QSize screen = window.screen()->availableSize();
    EXPECT_LE(window.width(), screen.width());
    EXPECT_LE(window.height(), screen.height());
}

}  // namespace
}  // namespace hw::viewer

// SPDX-License-Identifier: GPL-3.0-or-later
// Pictures that go into a paper: complete legends, nothing to press, sizes in millimetres, colours
// for every eye.
#include <gtest/gtest.h>

#include <QComboBox>
#include <QDialog>
#include <QHeaderView>
#include <QImage>
#include <QSlider>
#include <QTemporaryDir>
#include <QTest>
#include <QVBoxLayout>
#include <array>
#include <cmath>

#include "tests/models/test_graphs.h"
#include "viewer/panels/compare_panel.h"
#include "viewer/panels/main_window.h"
#include "viewer/panels/picture_dialog.h"
#include "viewer/panels/timeline_panel.h"
#include "viewer/panels/view_picture.h"
#include "viewer/panels/whatif_panel.h"
#include "viewer/plots/colours.h"
#include "viewer/plots/frontier_plot.h"
#include "viewer/plots/legend.h"
#include "viewer/plots/theme.h"

namespace hw::viewer {
namespace {

TEST(Legend, HasEveryEntryAtEveryWidth) {
    std::vector<Legend::Item> items;
    for (int i = 0; i < 9; ++i)
        items.push_back({QColor::fromHsv(i * 40, 255, 255), QStringLiteral("category %1").arg(i)});
    QWidget frame;
    auto* column = new QVBoxLayout(&frame);
    column->setContentsMargins(0, 0, 0, 0);
    auto* legend = new Legend;
    legend->setItems(items);
    column->addWidget(legend);
    column->addStretch(1);
    frame.setAttribute(Qt::WA_DontShowOnScreen);
    for (const int width : {1400, 600, 260, 120}) {
        frame.resize(width, 400);
        frame.show();
        QTest::qWait(20);
        EXPECT_EQ(legend->height(), legend->heightWithin(legend->width())) << width;
        const QImage drawn = legend->grab().toImage();
        for (const Legend::Item& item : items) {
            int pixels = 0;
            for (int y = 0; y < drawn.height(); ++y)
                for (int x = 0; x < drawn.width(); ++x)
                    pixels += drawn.pixel(x, y) == item.colour.rgb();
            EXPECT_GT(pixels, 50) << item.name.toStdString() << " at " << width;
        }
    }
    EXPECT_EQ(legend->heightWithin(4000), 20);
    EXPECT_GE(legend->heightWithin(120), 9 * 20);
}

TEST(Figures, AreWholeAtEveryWidth) {
    QWidget frame;
    auto* column = new QVBoxLayout(&frame);
    column->setContentsMargins(0, 0, 0, 0);
    auto* strip = new FigureStrip({QStringLiteral("peak"), QStringLiteral("step time"),
                                   QStringLiteral("recomputed"), QStringLiteral("from optimal")});
    column->addWidget(strip);
    column->addStretch(1);
    frame.setStyleSheet(theme().styleSheet());
    frame.setAttribute(Qt::WA_DontShowOnScreen);
    strip->setFigures({QStringLiteral("24.54 → 16.94 MB"), QStringLiteral("661.9 → 697.4 ms"),
                       QStringLiteral("48 of 666 ops"), QStringLiteral("≤ 0.71 %")});
    for (const int width : {1200, 700, 480, 380, 260, 180}) {
        frame.resize(width, 400);
        frame.show();
        EXPECT_TRUE(QTest::qWaitFor(
            [&] {
                return strip->width() == width && strip->height() == strip->heightWithin(width);
            },
            120'000))
            << width;
        QTest::qWait(20);  // its parts have their places
        for (const QLabel* each : strip->findChildren<QLabel*>()) {
            const QRect place(each->mapTo(strip, QPoint()), each->size());
            EXPECT_TRUE(strip->rect().contains(place)) << each->text().toStdString() << width;
            EXPECT_GE(each->width(), each->sizeHint().width())
                << each->text().toStdString() << " at " << width;
        }
    }
    EXPECT_GT(strip->height(), strip->heightWithin(1200)) << "more rows";
}

// Machado, Oliveira and Fernandes (2009), severity 1; rows of matrices over linear RGB.
using Matrix = std::array<std::array<double, 3>, 3>;
constexpr Matrix kAll{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
constexpr Matrix kNoGreen{{{0.367322, 0.860646, -0.227968},
                           {0.280085, 0.672501, 0.047413},
                           {-0.011820, 0.042940, 0.968881}}};
constexpr Matrix kNoRed{{{0.152286, 1.052583, -0.204868},
                         {0.114503, 0.786281, 0.099216},
                         {-0.003882, -0.048116, 1.051998}}};

std::array<double, 3> labOf(const QColor& colour, const Matrix& eye) {
    const auto linear = [](double c) {
        return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
    };
    const std::array<double, 3> rgb{linear(colour.redF()), linear(colour.greenF()),
                                    linear(colour.blueF())};
    std::array<double, 3> seen{};
    for (std::size_t i = 0; i < 3; ++i)
        for (std::size_t j = 0; j < 3; ++j) seen[i] += eye[i][j] * rgb[j];
    const auto f = [](double t) {
        return t > 0.008856 ? std::cbrt(t) : 7.787 * std::max(t, 0.0) + 16.0 / 116;
    };
    const double x = f((0.4124 * seen[0] + 0.3576 * seen[1] + 0.1805 * seen[2]) / 0.95047),
                 y = f(0.2126 * seen[0] + 0.7152 * seen[1] + 0.0722 * seen[2]),
                 z = f((0.0193 * seen[0] + 0.1192 * seen[1] + 0.9505 * seen[2]) / 1.08883);
    return {116 * y - 16, 500 * (x - y), 200 * (y - z)};
}

TEST(Colours, OfCategoriesDifferForEveryEye) {
    constexpr double kLeast = 15;  // of the distance in CIELAB; 2 can just be seen side by side
    for (const bool light : {false, true}) {
        setTheme(light);
        for (const Matrix& eye : {kAll, kNoGreen, kNoRed})
            for (int a = 0; a < core::kCategoryCount; ++a)
                for (int b = 0; b < a; ++b) {
                    const auto one = labOf(theme().category(static_cast<core::Category>(a)), eye);
                    const auto two = labOf(theme().category(static_cast<core::Category>(b)), eye);
                    const double apart =
                        std::hypot(one[0] - two[0], one[1] - two[1], one[2] - two[2]);
                    EXPECT_GE(apart, kLeast)
                        << categoryText(static_cast<core::Category>(a)).toStdString() << " and "
                        << categoryText(static_cast<core::Category>(b)).toStdString();
                }
    }
    setTheme(false);
}

// Printed without colours: bands that lie on one another, whichever of them a program has.
TEST(Colours, OfBandsDifferInGrey) {
    constexpr double kLeast = 9;  // of the lightness in CIELAB
    using core::Category;
    const auto lightness = [](Category category) {
        return labOf(theme().category(category), kAll)[0];
    };
    for (const auto& [below, above] : {std::pair(Category::Parameter, Category::OptimizerState),
                                       {Category::Parameter, Category::Gradient},
                                       {Category::Parameter, Category::Activation},
                                       {Category::OptimizerState, Category::Gradient},
                                       {Category::OptimizerState, Category::Activation},
                                       {Category::Gradient, Category::Activation},
                                       {Category::Gradient, Category::GatheredParameter},
                                       {Category::Activation, Category::Temporary},
                                       {Category::Temporary, Category::Workspace}})
        EXPECT_GE(std::abs(lightness(above) - lightness(below)), kLeast)
            << categoryText(below).toStdString() << " below " << categoryText(above).toStdString();
}

// Bands of lines: what they are called does not matter here.
Bands lineBands() {
    core::RecordedMemory memory;
    memory.graph.ops.resize(1);
    memory.graph.ops[0].name = "aten::mm";
    memory.graph.storages.resize(1);
    memory.graph.storages[0].bytes = core::Bytes(1);
    memory.moments = {{core::Nanoseconds(0), core::Bytes(1), 0}};
    memory.lifetimes = {{0, 0, 0}};
    return Bands::of(memory, core::CallStacks());
}

TEST(Colours, OfLinesDifferForEveryEyeAndInGrey) {
    constexpr double kLeast = 15, kLeastInGrey = 9;
    const Bands bands = lineBands();
    ASSERT_TRUE(bands.byLine());
    for (const bool light : {false, true}) {
        const ThemeFor colours(light);
        const auto seen = [&](Band band, const Matrix& eye) {
            return labOf(theme().band(bands, band), eye);
        };
        for (const Matrix& eye : {kAll, kNoGreen, kNoRed})
            for (Band a = 0; a < kBandCount; ++a)
                for (Band b = 0; b < a; ++b) {
                    const auto one = seen(a, eye), two = seen(b, eye);
                    EXPECT_GE(std::hypot(one[0] - two[0], one[1] - two[1], one[2] - two[2]), kLeast)
                        << int{a} << " and " << int{b};
                }
        const std::vector<Band> stack = bands.fromTheBottom();
        for (std::size_t i = 1; i < stack.size(); ++i)
            EXPECT_GE(std::abs(seen(stack[i], kAll)[0] - seen(stack[i - 1], kAll)[0]), kLeastInGrey)
                << int{stack[i]} << " on " << int{stack[i - 1]};
    }
}

TEST(Colours, OfMoreAndLessDifferForEveryEye) {
    constexpr double kLeast = 25;
    for (const bool light : {false, true}) {
        setTheme(light);
        for (const Matrix& eye : {kAll, kNoGreen, kNoRed})
            for (const auto& [a, b] :
                 {std::pair(1.0, -1.0), {1.0, 0.0}, {-1.0, 0.0}, {0.3, -0.3}}) {
                const auto one = labOf(changeColour(a), eye), two = labOf(changeColour(b), eye);
                EXPECT_GE(std::hypot(one[0] - two[0], one[1] - two[1], one[2] - two[2]), kLeast)
                    << a << " and " << b;
            }
    }
    setTheme(false);
}

TEST(Colours, InkReadsOnEveryFill) {
    constexpr double kLeast = 4;  // WCAG asks for 4.5; no ink has that on the middle greys
    for (const bool light : {false, true}) {
        setTheme(light);
        std::vector<QColor> fills{theme().panel, theme().raised, theme().muted, theme().line};
        for (int c = 0; c < core::kCategoryCount; ++c)
            for (const double share : {0.3, 0.85, 1.0})
                fills.push_back(
                    blend(theme().panel, theme().category(static_cast<core::Category>(c)), share));
        for (Band band = 0; band < kBandCount; ++band)
            for (const double share : {0.3, 0.85, 1.0})
                fills.push_back(blend(theme().panel, theme().band(lineBands(), band), share));
        for (int change = -10; change <= 10; ++change) fills.push_back(changeColour(change / 10.0));
        for (const QColor& fill : fills)
            EXPECT_GE(contrast(inkOn(fill), fill), kLeast) << fill.name().toStdString();
    }
    setTheme(false);
    EXPECT_NEAR(contrast(Qt::black, Qt::white), 21, 1e-6);
}

class Picture : public ::testing::Test {
protected:
    void SetUp() override {
        workspace_.selectPlanners({QStringLiteral("none"), QStringLiteral("chen-greedy")});
        ASSERT_TRUE(workspace_.loader().openNow(SAMPLE_SESSION, {}, std::nullopt));
        ASSERT_TRUE(workspace_.planNow());
    }
    QImage draw(const PanelKind& kind, const PicturePreset& size) {
        const QString file = folder_.filePath(QStringLiteral("p.png"));
        const auto drawn =
            savePictureOfView(workspace_, kind, {file.toStdString(), size, {}, {"plan"}}, false);
        EXPECT_TRUE(drawn) << (drawn ? "" : drawn.error().what);
        return QImage(file);
    }
    QTemporaryDir folder_;
    Workspace workspace_;
};

TEST_F(Picture, OfAColumnIsAsWideAsOne) {
    const auto preset = picturePreset("column");
    ASSERT_TRUE(preset);
    const bool before = theme().light;
    for (const PanelKind* kind : panelKinds()) {
        const QImage image = draw(*kind, *preset);
        ASSERT_FALSE(image.isNull()) << kind->name;
        EXPECT_NEAR(image.width() / (image.dotsPerMeterX() / 1000.0), 85, 0.5) << kind->name;
        EXPECT_GT(image.dotsPerMeterX(), 280 / 0.0254) << "300 pixels an inch";
        if (kind == &WhatIfPanel::kKind) {
            EXPECT_EQ(image.pixelColor(2, image.height() - 3), QColor(Qt::white)) << "paper";
        }
    }
    EXPECT_EQ(theme().light, before) << "the window keeps its own";
    EXPECT_EQ(picturePreset("poster").error().code, core::ErrorCode::Usage);
}

// A column of a paper cannot be scrolled: what a plan needs and costs is in it.
TEST_F(Picture, OfAColumnComparesPeaksAndTimes) {
    QWidget frame;
    auto* column = new QVBoxLayout(&frame);
    column->setContentsMargins(0, 0, 0, 0);
    auto* panel = new ComparePanel(workspace_);
    column->addWidget(panel->header());
    column->addWidget(panel);
    panel->hideControls();
    frame.setAttribute(Qt::WA_DontShowOnScreen);
    frame.resize(picturePreset("column")->width, 600);
    frame.show();
    QTest::qWait(20);
    const TableView& table = panel->table();
    for (const int each :
         {CompareModel::Planner, CompareModel::PredictedPeak, CompareModel::Overhead}) {
        EXPECT_FALSE(table.isColumnHidden(each)) << each;
        EXPECT_LE(table.columnViewportPosition(each) + table.columnWidth(each),
                  table.viewport()->width())
            << each;
    }
    EXPECT_LE(table.header()->length(), table.viewport()->width());
}

// Names stand beside their curves and not on one another, in a column of a paper and in a low view.
TEST_F(Picture, OfWhatIfHasNoTextOverAnother) {
    workspace_.selectPlanners({QStringLiteral("none"), QStringLiteral("chen-greedy"),
                               QStringLiteral("dtr:eqclass"), QStringLiteral("echo")});
    ASSERT_TRUE(workspace_.planNow());
    ASSERT_TRUE(workspace_.frontierNow());
    FrontierPlot plot(workspace_);
    plot.setAttribute(Qt::WA_DontShowOnScreen);
    for (const QSize& size : {QSize(900, 500), QSize(380, 300), QSize(395, 110), QSize(354, 100)})
        for (const double budget : {0.5, 0.6, 0.7, 0.9, 1.0}) {
            workspace_.placeBudget(budget);
            plot.resize(size);
            plot.show();
            plot.reload();
            plot.replot();
            const std::vector<QRectF>& labels = plot.labels();
            EXPECT_GE(labels.size(), 5U);
            for (std::size_t a = 0; a < labels.size(); ++a) {
                EXPECT_TRUE(QRectF(plot.rect()).contains(labels[a])) << a;
                for (std::size_t b = 0; b < a; ++b) {
                    const QRectF both = labels[a] & labels[b];
                    EXPECT_LE(both.width() * both.height(), 30)
                        << a << " and " << b << " at " << size.width() << " x " << size.height()
                        << ", budget " << budget;
                }
            }
        }
}

TEST_F(Picture, HasNothingToPressOrToTypeInto) {
    for (const PanelKind* kind : panelKinds()) {
        QWidget frame;
        auto* column = new QVBoxLayout(&frame);
        Panel* panel = kind->make(workspace_);
        column->addWidget(panel->header());
        column->addWidget(panel);
        ASSERT_TRUE(panel->prepareShot({"plan"}));
        panel->hideControls();
        frame.setAttribute(Qt::WA_DontShowOnScreen);
        frame.resize(600, 500);
        frame.show();
        QTest::qWait(10);
        for (const QWidget* each : frame.findChildren<QWidget*>()) {
            const bool control = qobject_cast<const QAbstractButton*>(each) ||
                                 qobject_cast<const QLineEdit*>(each) ||
                                 qobject_cast<const QAbstractSlider*>(each);
            EXPECT_FALSE(control && each->isVisible())
                << kind->name << ": " << each->metaObject()->className() << " "
                << each->objectName().toStdString();
        }
    }
}

TEST(SavePicture, AsksForTheViewAndNamesTheFileAfterIt) {
    MainWindow window;
    window.workspace().selectPlanners({QStringLiteral("none")});
    window.resize(1280, 688);
    window.show();
    ASSERT_TRUE(QTest::qWaitForWindowExposed(&window));
    window.open(QStringLiteral(SAMPLE_SESSION));
    ASSERT_TRUE(QTest::qWaitFor([&] { return window.workspace().document() != nullptr; }, 120'000));
    QTest::keyClick(&window, Qt::Key_S, Qt::ControlModifier);
    auto* dialog = window.findChild<PictureDialog*>();
    ASSERT_TRUE(dialog && dialog->isVisible());
    EXPECT_EQ(dialog->view(), &TimelinePanel::kKind) << "the one that has the keys";
    dialog->findChild<QComboBox*>(QStringLiteral("pictureView"))
        ->setCurrentText(QStringLiteral("What if"));
    dialog->findChild<QComboBox*>(QStringLiteral("pictureSize"))->setCurrentIndex(1);
    EXPECT_EQ(dialog->view(), &WhatIfPanel::kKind);
    EXPECT_EQ(dialog->suggestion(), QStringLiteral("whatif-column.png"));
    EXPECT_TRUE(dialog->size().light) << "paper is white";
}

}  // namespace
}  // namespace hw::viewer

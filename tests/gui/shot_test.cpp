// SPDX-License-Identifier: GPL-3.0-or-later
#include <gtest/gtest.h>

#include <QFile>
#include <QImage>
#include <QTemporaryDir>
#include <set>

#include "tests/models/test_graphs.h"
#include "viewer/plots/theme.h"
#include "viewer/viewer.h"

namespace hw::viewer {
namespace {

int pixelsOf(const QImage& image, const QColor& colour) {
    int count = 0;
    for (int y = 0; y < image.height(); ++y)
        for (int x = 0; x < image.width(); ++x) {
            const QColor pixel = image.pixelColor(x, y);
            count += std::abs(pixel.red() - colour.red()) +
                         std::abs(pixel.green() - colour.green()) +
                         std::abs(pixel.blue() - colour.blue()) <
                     24;
        }
    return count;
}

ShotOptions options(const std::string& session, const QTemporaryDir& folder, const char* view,
                    const char* file) {
    ShotOptions made;
    made.session = session;
    made.view = view;
    made.output = folder.filePath(QLatin1String(file)).toStdString();
    made.width = 1000;
    made.height = 600;
    made.planners = {"none", "chen-greedy", "dtr:eqclass"};  // those that plan at once
    return made;
}

TEST(Shot, UnknownViewsFormatsAndSizesAreUsageErrors) {
    ShotOptions wrong;
    wrong.session = "x.hws";
    wrong.view = "cinema";
    wrong.output = "a.png";
    const auto view = shot(wrong);
    ASSERT_FALSE(view);
    EXPECT_EQ(view.error().code, core::ErrorCode::Usage);
    for (const std::string& name : viewNames())
        EXPECT_NE(view.error().hint.find(name), std::string::npos);
    wrong.view = "timeline";
    wrong.output = "a.bmp";
    const auto format = shot(wrong);
    ASSERT_FALSE(format);
    EXPECT_EQ(format.error().code, core::ErrorCode::Usage);
    wrong.output = "a.png";
    wrong.width = 3;
    const auto size = shot(wrong);
    ASSERT_FALSE(size);
    EXPECT_EQ(size.error().code, core::ErrorCode::Usage);
    wrong.width = 800;
    const auto session = shot(wrong);
    ASSERT_FALSE(session);
    EXPECT_EQ(session.error().code, core::ErrorCode::BadInput);
}

class ShotOnLogs : public samples::OnLogs {};
HW_WITH_LOGS(ShotOnLogs);

TEST_P(ShotOnLogs, EveryViewDrawsBothThemes) {
    QTemporaryDir folder;
    for (const std::string& view : viewNames())
        for (const bool light : {false, true}) {
            SCOPED_TRACE(view + (light ? " light" : " dark"));
            ShotOptions wanted = options(logPath("unet"), folder, view.c_str(), "a.png");
            wanted.light = light;
            wanted.scale = 1.5;
            const auto drawn = shot(wanted);
            ASSERT_TRUE(drawn) << drawn.error().what;
            const QImage image(QString::fromStdString(drawn->file));
            EXPECT_EQ(image.width(), 1500);
            EXPECT_EQ(image.height(), 900);
            EXPECT_EQ(drawn->width, 1500);
            EXPECT_EQ(drawn->height, 900);
            EXPECT_GT(pixelsOf(image, theme().panel), image.width() * image.height() / 4)
                << "the theme's surface";
            EXPECT_GT(pixelsOf(image, theme().text) + pixelsOf(image, theme().muted), 200)
                << "its text";
        }
}

class ShotOfSnapshots : public ::testing::TestWithParam<std::string> {};
HW_WITH_DATA(ShotOfSnapshots, "torch-snapshot");

TEST_P(ShotOfSnapshots, HaveEveryView) {
    const std::string snapshot = GetParam() + "/torch-snapshot/empty-cache.pickle.gz";
    QTemporaryDir folder;
    for (const std::string& view : viewNames()) {
        SCOPED_TRACE(view);
        const auto drawn = shot(options(snapshot, folder, view.c_str(), "a.png"));
        ASSERT_TRUE(drawn) << drawn.error().what;
        const QImage image(QString::fromStdString(drawn->file));
        EXPECT_EQ(image.width(), 1000);
        EXPECT_GT(pixelsOf(image, theme().text) + pixelsOf(image, theme().muted), 200);
    }
}

TEST_P(ShotOnLogs, VectorPicturesHoldTextAndNoBitmapOfThePlot) {
    QTemporaryDir folder;
    const auto svg = shot(options(logPath("unet"), folder, "timeline", "a.svg"));
    ASSERT_TRUE(svg) << svg.error().what;
    QFile file(QString::fromStdString(svg->file));
    ASSERT_TRUE(file.open(QIODevice::ReadOnly));
    const QByteArray text = file.readAll();
    EXPECT_TRUE(text.contains("live memory"));
    EXPECT_TRUE(text.contains("step time"));
    EXPECT_TRUE(text.contains("peak "));
    EXPECT_FALSE(text.contains("<image"));
    const auto pdf = shot(options(logPath("unet"), folder, "whatif", "a.pdf"));
    ASSERT_TRUE(pdf) << pdf.error().what;
    QFile page(QString::fromStdString(pdf->file));
    ASSERT_TRUE(page.open(QIODevice::ReadOnly));
    EXPECT_TRUE(page.readAll().startsWith("%PDF"));
    EXPECT_GT(page.size(), 5000);
}

}  // namespace
}  // namespace hw::viewer

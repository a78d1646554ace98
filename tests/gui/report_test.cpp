// SPDX-License-Identifier: GPL-3.0-or-later
// The story of a session as one file.
#include <gtest/gtest.h>

#include <QFile>
#include <QTemporaryDir>

#include "viewer/viewer.h"

namespace hw::viewer {
namespace {

class ReportTest : public ::testing::Test {
protected:
    ReportOptions options(const char* file) const {
        ReportOptions made;
        made.session = SAMPLE_SESSION;
        made.output = folder_.filePath(QLatin1String(file)).toStdString();
        made.planners = {"none", "chen-greedy"};  // those that plan at once
        made.ratio = 0.65;
        return made;
    }
    static QByteArray written(const ReportOptions& options) {
        QFile file(QString::fromStdString(options.output));
        return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
    }
    QTemporaryDir folder_;
};

TEST_F(ReportTest, HtmlTellsTheWholeStoryAlone) {
    const ReportOptions wanted = options("story.html");
    ASSERT_TRUE(report(wanted));
    const QByteArray html = written(wanted);
    for (const char* part :
         {"The step peaks at 24.54 MB", "Who holds the peak", "encoder.layers.0.self_attn",
          "What less memory costs", "The chosen plan: chen-greedy", "pytorch 1.13.0a0",
          "Classifier", "The recording has no gaps"})
        EXPECT_TRUE(html.contains(part)) << part;
    EXPECT_TRUE(html.contains("15.35 MB")) << "measured beside predicted";
    EXPECT_EQ(html.count("<svg"), 4);
    for (const char* map : {"Where it lies", "arena of the plan", "longest hole", "blank: free"})
        EXPECT_TRUE(html.contains(map)) << map;
    for (const char* outside : {"<script", "src=\"", "@import", "url(http"})
        EXPECT_FALSE(html.contains(outside)) << outside;
}

TEST_F(ReportTest, PdfAndRefusals) {
    const ReportOptions pdf = options("story.pdf");
    ASSERT_TRUE(report(pdf));
    EXPECT_TRUE(written(pdf).startsWith("%PDF"));
    EXPECT_EQ(report(options("story.txt")).error().code, core::ErrorCode::Usage);
    EXPECT_EQ(report(options("no/such/story.html")).error().code, core::ErrorCode::BadInput);
    ReportOptions beyond = options("story.html");
    beyond.ratio = 1.5;
    EXPECT_EQ(report(beyond).error().code, core::ErrorCode::Usage);
}

}  // namespace
}  // namespace hw::viewer

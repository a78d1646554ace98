// SPDX-License-Identifier: GPL-3.0-or-later
#include <gtest/gtest.h>

#include <QApplication>
#include <QFile>
#include <QTemporaryDir>

namespace {

// A screen that has room for every size that a test asks for, at scale 2 too.
constexpr const char* kScreen = R"({"screens": [{"name": "large", "x": 0, "y": 0, "width": 3840,
    "height": 2160, "logicalDpi": 96, "logicalBaseDpi": 96, "dpr": 1}]})";

}  // namespace

int main(int argc, char** argv) {
    const QTemporaryDir folder;
    if (!qEnvironmentVariableIsSet("QT_QPA_PLATFORM")) {
        QFile screens(folder.filePath(QStringLiteral("screens.json")));
        if (screens.open(QIODevice::WriteOnly)) screens.write(kScreen);
        qputenv("QT_QPA_PLATFORM", "offscreen:configfile=" + screens.fileName().toUtf8());
    }
    QApplication application(argc, argv);
    testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
}

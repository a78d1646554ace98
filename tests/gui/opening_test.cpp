// SPDX-License-Identifier: GPL-3.0-or-later
// Files that cannot be opened: a message that says what happened and what to do, and nothing lost.
#include <gtest/gtest.h>

#include <QFile>
#include <QFileInfo>
#include <QMessageBox>
#include <QPushButton>
#include <QTemporaryDir>
#include <QTest>

#include "tests/gui/patience.h"
#include "viewer/panels/main_window.h"
#include "viewer/panels/timeline_panel.h"

namespace hw::viewer {
namespace {

class Opening : public ::testing::Test {
protected:
    void SetUp() override {
        sample_ = QStringLiteral(SAMPLE_SESSION);
        ASSERT_TRUE(QFile::exists(sample_));
        window_.workspace().selectPlanners({QStringLiteral("none")});
        window_.show();
        ASSERT_TRUE(QTest::qWaitForWindowExposed(&window_));
    }
    QString copy(const char* name) {
        const QString path = folder_.filePath(QLatin1String(name));
        EXPECT_TRUE(QFile::copy(sample_, path));
        EXPECT_TRUE(QFile::setPermissions(path, QFile::ReadOwner | QFile::WriteOwner));
        return path;
    }
    bool opens(const QString& path) {
        window_.open(path);
        return QTest::qWaitFor(
            [&] {
                const DocumentPointer& shown = window_.workspace().document();
                return shown && shown->path == path.toStdString();
            },
            kPatience);
    }
    /// What the window says about a file that it does not open; the box is closed again.
    std::pair<QString, QString> refuses(const QString& path) {
        window_.open(path);
        QMessageBox* box = nullptr;
        const auto said = [&] {
            box = window_.findChild<QMessageBox*>();
            return box != nullptr && box->isVisible();
        };
        if (!QTest::qWaitFor(said, kPatience)) return {};
        const std::pair words(box->text(), box->informativeText());
        QTest::mouseClick(box->button(QMessageBox::Ok), Qt::LeftButton);
        EXPECT_TRUE(QTest::qWaitFor([&] { return window_.findChild<QMessageBox*>() == nullptr; },
                                    kPatience));
        return words;
    }

    QString sample_;
    QTemporaryDir folder_;
    MainWindow window_;
};

TEST_F(Opening, WhatCannotBeReadLeavesTheOpenSessionAlone) {
    ASSERT_TRUE(opens(sample_));
    const DocumentPointer before = window_.workspace().document();

    const QString cut = copy("cut.hws");
    ASSERT_TRUE(QFile::resize(cut, QFileInfo(cut).size() / 2));
    const auto [damaged, again] = refuses(cut);
    EXPECT_TRUE(damaged.contains(cut)) << damaged.toStdString();
    EXPECT_TRUE(again.contains(QStringLiteral("cut short"))) << again.toStdString();
    EXPECT_TRUE(again.contains(QStringLiteral("copy it again"))) << again.toStdString();

    const QString newer = copy("newer.hws");
    QFile file(newer);
    ASSERT_TRUE(file.open(QIODevice::ReadWrite));
    ASSERT_TRUE(file.seek(60));  // user_version in the header of a SQLite file
    file.write(QByteArray("\0\0\0\x63", 4));
    file.close();
    const auto [versions, update] = refuses(newer);
    EXPECT_TRUE(versions.contains(QStringLiteral("version 99"))) << versions.toStdString();
    EXPECT_TRUE(
        versions.contains(QStringLiteral("up to version %1").arg(core::kSessionSchemaVersion)));
    EXPECT_TRUE(update.contains(QStringLiteral("newer Highwater")));

    const QString other = folder_.filePath(QStringLiteral("other.hws"));
    QFile text(other);
    ASSERT_TRUE(text.open(QIODevice::WriteOnly));
    text.write("no session at all\n");
    text.close();
    const auto [foreign, hint] = refuses(other);
    EXPECT_TRUE(foreign.contains(other)) << foreign.toStdString();
    EXPECT_FALSE(hint.isEmpty());

    EXPECT_EQ(window_.workspace().document(), before);
    EXPECT_TRUE(window_.panel<TimelinePanel>().isVisible());
}

TEST_F(Opening, AReadOnlyFolderIsRead) {
    const QString path = copy("run.hws");
    ASSERT_TRUE(QFile::setPermissions(path, QFile::ReadOwner));
    ASSERT_TRUE(QFile::setPermissions(folder_.path(), QFile::ReadOwner | QFile::ExeOwner));
    EXPECT_TRUE(opens(path));
    EXPECT_EQ(QDir(folder_.path()).entryList(QDir::Files), QStringList{QStringLiteral("run.hws")});
    ASSERT_TRUE(QFile::setPermissions(folder_.path(),
                                      QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner));
    QFile sample(sample_), read(path);
    ASSERT_TRUE(sample.open(QIODevice::ReadOnly) && read.open(QIODevice::ReadOnly));
    EXPECT_EQ(read.readAll(), sample.readAll()) << "looking changes nothing";
}

}  // namespace
}  // namespace hw::viewer

// SPDX-License-Identifier: GPL-3.0-or-later
// The window has what the registry of views says, and nothing besides.
#include <gtest/gtest.h>

#include <QDir>
#include <QTabBar>
#include <QTemporaryDir>
#include <QTest>
#include <set>

#include "viewer/panels/file_dialog.h"
#include "viewer/panels/main_window.h"
#include "viewer/viewer.h"

namespace hw::viewer {
namespace {

QDockWidget* dockNamed(const MainWindow& window, const char* name) {
    return window.findChild<QDockWidget*>(QLatin1String(name));
}

TEST(Registry, EveryViewHasADockWithItsTitleAndHelp) {
    const MainWindow window;
    std::set<std::string> names;
    for (const PanelKind* kind : panelKinds()) {
        SCOPED_TRACE(kind->name);
        EXPECT_TRUE(names.insert(kind->name).second) << "named twice";
        const QDockWidget* dock = dockNamed(window, kind->name);
        ASSERT_NE(dock, nullptr);
        EXPECT_FALSE(dock->windowTitle().isEmpty());
        EXPECT_EQ(dock->windowTitle(), QLatin1String(kind->title));
        EXPECT_FALSE(dock->widget()->whatsThis().isEmpty());
        EXPECT_EQ(dock->widget()->whatsThis(), QString::fromUtf8(kind->help));
        EXPECT_EQ(&static_cast<Panel*>(dock->widget())->kind(), kind);
    }
    const qsizetype live = 1;  // belongs to no session, and is no view of one
    EXPECT_EQ(window.findChildren<QDockWidget*>().size(), qsizetype(names.size()) + live);
    names.insert("window");
    const std::vector<std::string> shot = viewNames();
    EXPECT_EQ(std::set<std::string>(shot.begin(), shot.end()), names);
}

class ShownWindow : public testing::Test {
protected:
    void SetUp() override {
        window_.workspace().selectPlanners({QStringLiteral("none")});
        window_.resize(1400, 900);
        window_.show();
        ASSERT_TRUE(QTest::qWaitForWindowExposed(&window_));
        window_.open(QStringLiteral(SAMPLE_SESSION));
        ASSERT_TRUE(
            QTest::qWaitFor([&] { return window_.workspace().document() != nullptr; }, 120'000));
    }
    MainWindow window_;
};

// Qt makes the tabs of what is shown.
TEST_F(ShownWindow, ViewsOfOneAreaAreTabsAndThoseOfOthersAreNot) {
    int tabs = 0;
    for (const PanelKind* one : panelKinds())
        for (const PanelKind* other : panelKinds()) {
            QDockWidget *dock = dockNamed(window_, one->name),
                        *second = dockNamed(window_, other->name);
            if (one == other || dock->isHidden() || second->isHidden()) continue;
            SCOPED_TRACE(std::string(one->name) + " and " + other->name);
            const bool together = window_.tabifiedDockWidgets(dock).contains(second);
            EXPECT_EQ(together, one->area == other->area);
            tabs += together ? 1 : 0;
        }
    EXPECT_GT(tabs, 0);
}

TEST_F(ShownWindow, EachAreaShowsItsFirstViewFirst) {
    const MainWindow& window = window_;
    std::set<PanelArea> seen;
    for (const PanelKind* kind : panelKinds()) {
        SCOPED_TRACE(kind->name);
        const QDockWidget* dock = dockNamed(window, kind->name);
        const bool first = seen.insert(kind->area).second;
        EXPECT_EQ(!dock->visibleRegion().isEmpty(), first && !dock->isHidden());
    }
    EXPECT_EQ(seen.size(), 6u) << "an area without a view";
}

TEST(Registry, ALayoutOfOtherViewsIsNotRestored) {
    const QTemporaryDir folder;
    const QString file = folder.filePath(QStringLiteral("settings.ini"));
    WindowMemory memory(std::make_unique<QSettings>(file, QSettings::IniFormat));
    QMainWindow before;
    const auto add = [&](const char* name) {
        auto* dock = new QDockWidget;
        dock->setObjectName(QLatin1String(name));
        before.addDockWidget(Qt::LeftDockWidgetArea, dock);
    };
    add("timeline");
    const auto keep = [&] { memory.keep(before, before.saveState(WindowMemory::kLayout)); };
    keep();
    EXPECT_TRUE(before.restoreState(memory.docks(before), WindowMemory::kLayout));
    add("peak");
    EXPECT_TRUE(memory.docks(before).isEmpty());
    keep();
    EXPECT_TRUE(before.restoreState(memory.docks(before), WindowMemory::kLayout));
}

TEST(Registry, TheOpenDialogOffersWhateverCanBeRead) {
    const QString filter = openFilter().section(QStringLiteral(";;"), 0, 0);
    const QStringList patterns =
        filter.section(QLatin1Char('('), 1).chopped(1).split(QLatin1Char(' '));
    for (const char* name :
         {"run.hws", "unet.log", "unet.log.gz", "memory.pickle", "snapshot.pkl.gz",
          "resnet50.pt.trace.json.gz", "execution.json", "report.sqlite", "A.1048576.csv"})
        EXPECT_TRUE(QDir::match(patterns, QLatin1String(name))) << name;
    EXPECT_FALSE(QDir::match(patterns, QStringLiteral("picture.png")));
}

}  // namespace
}  // namespace hw::viewer

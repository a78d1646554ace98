// SPDX-License-Identifier: GPL-3.0-or-later
// What the window can do: its tool bar, keys, palette and dialogs.
#include <QFileDialog>
#include <QFileInfo>
#include <QToolBar>
#include <QToolButton>

#include "viewer/export/picture.h"
#include "viewer/export/report.h"
#include "viewer/panels/command_palette.h"
#include "viewer/panels/file_dialog.h"
#include "viewer/panels/inspector_panel.h"
#include "viewer/panels/main_window.h"
#include "viewer/panels/picture_dialog.h"
#include "viewer/panels/timeline_panel.h"
#include "viewer/panels/whatif_panel.h"
#include "viewer/plots/font_scale.h"
#include "viewer/plots/theme.h"

namespace hw::viewer {
namespace {

constexpr double kPan = 0.25;  // of what is seen

}  // namespace

QAction* MainWindow::action(const QString& text, const QKeySequence& key, const QString& tip) {
    auto* made = new QAction(text, this);
    made->setShortcut(key);
    made->setToolTip(
        key.isEmpty() ? tip
                      : tip + QStringLiteral(" (%1)").arg(key.toString(QKeySequence::NativeText)));
    addAction(made);
    return made;
}

void MainWindow::buildToolBar() {
    auto* bar = tools_ = new QToolBar;
    bar->setObjectName(QStringLiteral("titleStrip"));
    bar->setMovable(false);
    bar->setContextMenuPolicy(Qt::PreventContextMenu);
    auto* brand = new QLabel(QStringLiteral("Highwater"));
    brand->setObjectName(QStringLiteral("brand"));
    brand->setContentsMargins(4, 0, 0, 0);
    title_ = new QLabel;
    title_->setObjectName(QStringLiteral("muted"));
    title_->setContentsMargins(14, 0, 0, 0);
    bar->addWidget(brand);
    bar->addWidget(title_);
    auto* spring = new QWidget;
    spring->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Preferred);
    spring->setStyleSheet(QStringLiteral("background: transparent"));
    bar->addWidget(spring);

    QAction* record = action(tr("Record…"), QKeySequence(QStringLiteral("Ctrl+R")),
                             tr("Attach to a training process, or start one"));
    QAction* open = action(tr("Open…"), QKeySequence::Open, tr("Open a session or a log"));
    QAction* plan = action(tr("Plan"), Qt::Key_P, tr("Plan at the budget with every planner"));
    QAction* keep = action(tr("Export plan"), QKeySequence(QStringLiteral("Ctrl+E")),
                           tr("Write the plan that is drawn to a file"));
    QAction* run = action(tr("Run plan"), QKeySequence(QStringLiteral("Ctrl+Return")),
                          tr("Run the plan natively and compare every result"));
    QAction* train = action(tr("Train…"), QKeySequence(QStringLiteral("Ctrl+T")),
                            tr("Train under the plan: a program that runs, or one to start"));
    QAction* report =
        action(tr("Report"), Qt::Key_R, tr("Write the story of this step as HTML or PDF"));
    QAction* picture = action(tr("Save picture"), QKeySequence::Save,
                              tr("Save a view or the window as PNG, SVG or PDF"));
    picture->setIconText(tr("Picture"));  // room on the tool bar
    QAction* appearance = action(tr("Theme"), Qt::Key_T, tr("Dark or light"));
    QAction* help = action(tr("Help"), QKeySequence(QStringLiteral("?")), tr("Keys"));
    for (QAction* shown : {record, open, plan, keep, run, train, report, picture, appearance, help})
        bar->addAction(shown);
    // Tool bars leave the keys out unless they are told.
    for (auto* button : bar->findChildren<QToolButton*>()) button->setFocusPolicy(Qt::TabFocus);
    addToolBar(Qt::TopToolBarArea, bar);
    recent_ = new QMenu(this);
    auto* opener = static_cast<QToolButton*>(bar->widgetForAction(open));
    opener->setMenu(recent_);
    opener->setPopupMode(QToolButton::MenuButtonPopup);
    connect(record, &QAction::triggered, attach_, &AttachDialog::open);
    connect(open, &QAction::triggered, this, &MainWindow::chooseFile);
    connect(plan, &QAction::triggered, &workspace_, &Workspace::planEvery);
    connect(keep, &QAction::triggered, planActions_, &PlanActions::exportPlan);
    connect(run, &QAction::triggered, planActions_, &PlanActions::runPlan);
    connect(train, &QAction::triggered, this, &MainWindow::trainUnderPlan);
    connect(report, &QAction::triggered, this, &MainWindow::writeReport);
    connect(picture, &QAction::triggered, this, &MainWindow::savePicture);
    connect(appearance, &QAction::triggered, this, [this] { setLight(!theme().light); });
    connect(help, &QAction::triggered, this, &MainWindow::showKeys);
    documentActions_ = {plan, keep, run, train, report, picture};
}

QAction* MainWindow::action(const QString& text, const QKeySequence& key, const QString& tip,
                            const std::function<void()>& run) {
    QAction* made = action(text, key, tip);
    connect(made, &QAction::triggered, this, run);
    return made;
}

// What has no button.
void MainWindow::buildShortcuts() {
    buildTimelineShortcuts();
    buildSelectionShortcuts();
    buildLayoutShortcuts();
    buildHelpShortcuts();
}

void MainWindow::buildTimelineShortcuts() {
    const auto plot = [this]() -> TimelinePlot& { return panel<TimelinePanel>().plot(); };
    QAction* closer = action(tr("Zoom in"), QKeySequence(QStringLiteral("+")), tr("Zoom in"),
                             [plot] { plot().zoom(1.5); });
    closer->setShortcuts({QKeySequence(QStringLiteral("+")), QKeySequence(QStringLiteral("=")),
                          QKeySequence(Qt::Key_W)});
    QAction* wider =
        action(tr("Zoom out"), Qt::Key_Minus, tr("Zoom out"), [plot] { plot().zoom(1 / 1.5); });
    wider->setShortcuts({QKeySequence(Qt::Key_Minus), QKeySequence(Qt::Key_S)});
    QAction* earlier = action(tr("Earlier"), Qt::Key_A, tr("Move the timeline to what was before"),
                              [plot] { plot().pan(-kPan); });
    QAction* later = action(tr("Later"), Qt::Key_D, tr("Move the timeline to what comes next"),
                            [plot] { plot().pan(kPan); });
    QAction* whole = action(tr("Whole step"), Qt::Key_0, tr("Show the whole step"),
                            [plot] { plot().resetZoom(); });
    QAction* budget = action(tr("Budget"), Qt::Key_B, tr("Move the budget with the arrow keys"),
                             [this] { panel<WhatIfPanel>().slider().setFocus(); });
    for (QAction* each : {closer, wider, earlier, later, whole, budget})
        documentActions_.push_back(each);
}

void MainWindow::buildSelectionShortcuts() {
    QAction* find =
        action(tr("Find…"), QKeySequence::Find,
               tr("Find an op, a tensor, a layer or a source line"), [this] { showSearch(); });
    QAction* there = action(tr("Zoom to the selection"), Qt::Key_F,
                            tr("The timeline shows what is selected, or the selected time"),
                            [this] { zoomToSelection(); });
    QAction* inspected =
        action(tr("Inspect"), Qt::Key_I, tr("What is known of the selection, with the keys there"),
               [this] { goTo(dockOf(InspectorPanel::kKind)); });
    QAction* copied = action(tr("Copy what is known"), QKeySequence(QStringLiteral("Ctrl+Shift+C")),
                             tr("All that the inspector says of the selection, as text"),
                             [this] { copyFacts(); });
    QAction* alone = action(tr("Maximise view"), Qt::Key_M,
                            tr("The view that has the keys alone, and back to all of them"),
                            [this] { toggleMaximised(viewWithKeys()); });
    QAction* what = action(tr("What is this?"), QKeySequence::HelpContents,
                           tr("Explain the view that has the keys"), [this] { showContextHelp(); });
    ofSelection_ = {inspected, there, copied, find, alone, what};
    for (QAction* each : ofSelection_) documentActions_.push_back(each);
    QAction* undo = action(tr("Undo"), QKeySequence::Undo, tr("Back to what was looked at before"),
                           [this] { history_->undo(); });
    QAction* redo = action(tr("Redo"), QKeySequence(QStringLiteral("Ctrl+Shift+Z")),
                           tr("Forward again"), [this] { history_->redo(); });
    for (QAction* each : {undo, redo}) documentActions_.push_back(each);
}

void MainWindow::buildLayoutShortcuts() {
    action(tr("Commands"), QKeySequence(QStringLiteral("Ctrl+Shift+P")),
           tr("Find a command by its name"), [this] { showPalette(); });
    action(tr("Larger text"), QKeySequence::ZoomIn, tr("Larger text"),
           [this] { setTextScale(fontScale() + kTextStep); });
    action(tr("Smaller text"), QKeySequence::ZoomOut, tr("Smaller text"),
           [this] { setTextScale(fontScale() - kTextStep); });
    action(tr("Usual text"), QKeySequence(QStringLiteral("Ctrl+0")), tr("Text of the usual size"),
           [this] { setTextScale(1); });
    action(tr("Reset the layout"), {}, tr("Every view where it was at first"),
           [this] { resetLayout(); });
}

void MainWindow::buildHelpShortcuts() {
    action(tr("Open the sample session"), {}, tr("A recorded step of a transformer"),
           [this] { openSample(); });
    documentActions_.push_back(
        action(tr("Tour"), {}, tr("A few words on each view"), [this] { startTour(); }));
}

void MainWindow::showPalette() {
    auto* views = new QObject(this);
    QList<QAction*> all = actions();
    for (QDockWidget* each : docks_) {
        if (each->isHidden()) continue;
        auto* go = new QAction(tr("View: %1").arg(each->windowTitle()), views);
        connect(go, &QAction::triggered, this, [this, each] { goTo(each); });
        all << go;
    }
    all << recent_->actions();
    auto* palette = new CommandPalette(all, this);
    connect(palette, &QObject::destroyed, views, &QObject::deleteLater);
    palette->open();
}

void MainWindow::fillRecent() {
    recent_->clear();
    const QStringList files = memory_ ? memory_->recentFiles() : QStringList();
    for (const QString& file : files) {
        QAction* made = recent_->addAction(tr("Open %1").arg(QFileInfo(file).fileName()));
        made->setToolTip(file);
        connect(made, &QAction::triggered, this, [this, file] { open(file); });
    }
}

void MainWindow::chooseFile() {
    const QString path = QFileDialog::getOpenFileName(this, tr("Open"), {}, openFilter());
    if (!path.isEmpty()) open(path);
}

void MainWindow::savePicture() {
    std::vector<const PanelKind*> views;
    for (const QDockWidget* each : docks_)
        if (panelOf(each).applies()) views.push_back(&panelOf(each).kind());
    auto* dialog = new PictureDialog(views, &panelOf(viewWithKeys()).kind(), this);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    connect(dialog, &QDialog::accepted, this, [this, dialog] {
        const QString base = QFileInfo(workspace_.document()->name).completeBaseName();
        askToSave(this, tr("Save picture"), workspace_.document()->path,
                  base + QLatin1Char('-') + dialog->suggestion(),
                  tr("Pixels (*.png);;Vectors (*.svg);;Vectors (*.pdf)"), QStringLiteral("png"),
                  [this, view = dialog->view(), size = dialog->size()](const QString& path) {
                      drawPicture(view, size, path);
                  });
    });
    dialog->open();
}

void MainWindow::drawPicture(const PanelKind* view, const PicturePreset& size,
                             const QString& path) {
    core::Status saved;
    if (view) {
        const std::vector<std::string> drawn(isPlanned(workspace_.active().plan()) ? 1 : 0,
                                             "active");
        const auto done =
            savePictureOfView(workspace_, *view, {path.toStdString(), size, {}, drawn}, false);
        if (!done) saved = done.error();
    } else {
        saved = savePictureOf(*this, path.toStdString(), 2);
    }
    if (!saved)
        showFailure(toQString(saved.error().what), toQString(saved.error().hint));
    else
        activity_->setText(tr("saved %1").arg(path));
}

void MainWindow::writeReport() {
    askToSave(this, tr("Write report"), workspace_.document()->path,
              QFileInfo(workspace_.document()->name).completeBaseName() + QStringLiteral(".html"),
              tr("Reports (*.html *.pdf)"), QStringLiteral("html"), [this](const QString& path) {
                  if (core::Status saved = saveReport(workspace_, path.toStdString()); !saved)
                      showFailure(toQString(saved.error().what), toQString(saved.error().hint));
                  else
                      activity_->setText(tr("saved %1").arg(path));
              });
}

}  // namespace hw::viewer

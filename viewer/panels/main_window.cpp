// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/panels/main_window.h"

#include <QApplication>
#include <QDragEnterEvent>
#include <QKeyEvent>
#include <QMessageBox>
#include <QMimeData>
#include <QStatusBar>
#include <algorithm>
#include <iterator>
#include <utility>

#include "viewer/panels/whatif_panel.h"
#include "viewer/plots/font_scale.h"
#include "viewer/plots/theme.h"

namespace hw::viewer {

MainWindow::MainWindow(QWidget* parent) : QMainWindow(parent) {
    setWindowTitle(QStringLiteral("Highwater"));
    setAcceptDrops(true);
    setDockNestingEnabled(true);
    resize(1680, 1000);
    empty_ = new EmptyState;
    attach_ = new AttachDialog(recorder_, live_, this);
    planActions_ = new PlanActions(workspace_, this);
    train_ = new TrainDialog(workspace_, live_, this);
    setCentralWidget(empty_);
    buildToolBar();
    buildRunStrip();
    buildShortcuts();
    buildDocks();
    buildLiveDock();
    buildStatusBar();
    connectWorkspace();
    connectRecorder();
    connectLive();
    connectHistory();
    documentArrived();
    firstState_ = saveState();
}

QDockWidget* MainWindow::makeDock(const PanelKind& kind) {
    Panel* panel = kind.make(workspace_);
    auto* made = new QDockWidget(panel->title());
    made->setObjectName(QLatin1String(kind.name));  // by which layouts are kept
    made->setWidget(panel);
    made->setTitleBarWidget(panel->header());
    made->setFeatures(QDockWidget::DockWidgetMovable | QDockWidget::DockWidgetFloatable);
    return made;
}

std::vector<QDockWidget*> MainWindow::docksOf(PanelArea area) const {
    std::vector<QDockWidget*> found;
    std::copy_if(docks_.begin(), docks_.end(), std::back_inserter(found),
                 [&](const QDockWidget* each) { return panelOf(each).kind().area == area; });
    return found;
}

void MainWindow::buildDocks() {
    for (const PanelKind* kind : panelKinds()) docks_.push_back(makeDock(*kind));
    const auto split = [this](PanelArea of, PanelArea off, Qt::Orientation way) {
        splitDockWidget(firstDock(of), firstDock(off), way);
    };
    addDockWidget(Qt::LeftDockWidgetArea, firstDock(PanelArea::Side));
    split(PanelArea::Side, PanelArea::Upper, Qt::Horizontal);
    split(PanelArea::Upper, PanelArea::LowerLeft, Qt::Vertical);
    split(PanelArea::LowerLeft, PanelArea::LowerRight, Qt::Horizontal);
    split(PanelArea::Upper, PanelArea::Strip, Qt::Vertical);
    setTabPosition(Qt::AllDockWidgetAreas, QTabWidget::North);
    for (QDockWidget* each : docks_) {
        QDockWidget* first = firstDock(panelOf(each).kind().area);
        if (each != first) tabifyDockWidget(first, each);
    }
    raiseFirstDocks();
    // Where a tab says the name, the line above the view need not.
    for (QDockWidget* each : docks_)
        if (!tabifiedDockWidgets(each).isEmpty())
            each->titleBarWidget()->findChild<QLabel*>(QStringLiteral("panelTitle"))->hide();
}

void MainWindow::raiseFirstDocks() {
    for (QDockWidget* each : docks_)
        if (each == firstDock(panelOf(each).kind().area)) each->raise();
}

void MainWindow::arrange() {
    QDockWidget* upper = firstDock(PanelArea::Upper);
    QDockWidget* strip = firstDock(PanelArea::Strip);
    QDockWidget* lower = firstDock(PanelArea::LowerLeft);
    const int side = std::clamp(width() / 5, std::min(300, width() / 4), 400);
    const int rest = width() - side;
    resizeDocks({firstDock(PanelArea::Side), upper}, {side, rest}, Qt::Horizontal);
    if (!workspace_.document()->plannable) return;
    resizeDocks({lower, firstDock(PanelArea::LowerRight)}, {rest * 42 / 100, rest * 58 / 100},
                Qt::Horizontal);
    const int above = height() * 54 / 100, below = height() - above, low = height() * 16 / 100;
    if (strip->isHidden())
        resizeDocks({upper, lower}, {above, below}, Qt::Vertical);
    else
        resizeDocks({upper, strip, lower}, {above - low, low, below}, Qt::Vertical);
}

void MainWindow::buildStatusBar() {
    status_ = new QLabel;
    status_->setObjectName(QStringLiteral("muted"));
    activity_ = new QLabel;
    auto* keys = new QLabel(
        tr("← → op · + − zoom · 0 whole step · B budget · P plan · S picture · T theme · ? help"));
    keys->setObjectName(QStringLiteral("muted"));
    status_->setContentsMargins(14, 0, 0, 0);
    keys->setContentsMargins(0, 0, 14, 0);
    for (QLabel* each : {status_, activity_, keys}) each->setMinimumWidth(1);  // on a narrow window
    statusBar()->setSizeGripEnabled(false);
    statusBar()->addWidget(status_);
    statusBar()->addWidget(activity_);
    statusBar()->addPermanentWidget(keys);
}

void MainWindow::connectWorkspace() {
    connect(planActions_, &PlanActions::failed, this, &MainWindow::showFailure);
    connect(planActions_, &PlanActions::told, activity_, &QLabel::setText);
    connect(empty_, &EmptyState::openRequested, this, &MainWindow::chooseFile);
    connect(empty_, &EmptyState::sampleRequested, this, [this] {
        openSample();
        startTour();
    });
    connect(&workspace_, &Workspace::documentChanged, this, &MainWindow::documentArrived);
    connect(&workspace_, &Workspace::failed, this, &MainWindow::showFailure);
    connect(&workspace_, &Workspace::busyChanged, this, [this](int pending, const QString& what) {
        activity_->setText(pending == 0   ? QString()
                           : pending == 1 ? what + QStringLiteral("…")
                                          : tr("%1 · %2 left · Esc stops").arg(what).arg(pending));
    });
}

void MainWindow::documentArrived() {
    const DocumentPointer& document = workspace_.document();
    const bool any = document != nullptr;
    placeLiveDock();
    for (QDockWidget* each : docks_) each->setVisible(any && panelOf(each).applies());
    for (QAction* needs : documentActions_) needs->setEnabled(any);
    if (!any) {
        title_->clear();
        status_->setText(tr("no session open"));
        return;
    }
    const bool fresh = std::exchange(shown_, document->path) != document->path;
    if (fresh && !arranged_) arrange();
    if (fresh && memory_) {
        memory_->remember(QString::fromStdString(document->path));
        fillRecent();
    }
    QStringList parts{document->name};
    parts << (!document->plannable ? tr("no step, nothing to plan")
              : document->steps > 1
                  ? tr("step %1 (%2 recorded)").arg(document->step).arg(document->steps)
                  : tr("step %1").arg(document->step));
    title_->setText(parts.join(QStringLiteral("    ")));
    setWindowTitle(document->name + QStringLiteral(" – Highwater"));
    status_->setText(tr("%1 ops · %2 storages · %3 costs · %4")
                         .arg(document->graph.ops.size())
                         .arg(document->graph.storages.size())
                         .arg(toQString(core::costSetName(document->graph.costs)),
                              document->gaps == 0   ? tr("no gaps")
                              : document->gaps == 1 ? tr("1 gap")
                                                    : tr("%1 gaps").arg(document->gaps)));
    QStringList gaps;
    for (const core::GapRow& gap : document->gapRows) gaps << toQString(gap.what + ": " + gap.why);
    status_->setToolTip(gaps.join(QLatin1Char('\n')));
    if (!fresh) return;
    raiseFirstDocks();
    firstDock(PanelArea::Upper)->widget()->setFocus();
}

void MainWindow::showFailure(const QString& what, const QString& hint) {
    if (!empty_->isHidden()) return empty_->setProblem(what, hint);
    auto* box = new QMessageBox(QMessageBox::Warning, QStringLiteral("Highwater"), what,
                                QMessageBox::Ok, this);
    box->setInformativeText(hint);
    box->setAttribute(Qt::WA_DeleteOnClose);
    box->open();
}

void MainWindow::open(const QString& path, const QStringList& plans) {
    empty_->setProblem({}, {});
    // The document's own work starts once it is there; open() itself returns at once.
    connect(
        &workspace_, &Workspace::documentChanged, this,
        [this] {
            workspace_.setBudget(workspace_.budget());
            workspace_.requestFrontier();
        },
        static_cast<Qt::ConnectionType>(Qt::QueuedConnection | Qt::SingleShotConnection));
    workspace_.open(path, plans);
}

core::Status MainWindow::prepareShot(const std::string& session,
                                     const std::vector<std::string>& plans,
                                     std::optional<std::int64_t> step) {
    if (core::Status done = workspace_.openNow(session, plans, step); !done) return done;
    return panel<WhatIfPanel>().prepareShot(plans);
}

// The arrows are no shortcuts: a focused slider or table keeps them for itself.
void MainWindow::keyPressEvent(QKeyEvent* event) {
    switch (event->key()) {
        case Qt::Key_Left:
            return workspace_.stepOp(-1);
        case Qt::Key_Right:
            return workspace_.stepOp(1);
        case Qt::Key_Escape:
            return workspace_.cancel();
        default:
            QMainWindow::keyPressEvent(event);
    }
}

void MainWindow::useMemory(WindowMemory memory) {
    memory_.emplace(std::move(memory));
    arranged_ = memory_->restore(*this);
    placeRunStrip();
    documentArrived();  // which docks show depends on the document alone
    setFontScale(memory_->fontScale());
    setLight(memory_->light());
    fillRecent();
}

void MainWindow::closeEvent(QCloseEvent* event) {
    if (memory_) {
        if (workspace_.document()) memory_->keep(*this);  // with all docks in their places
        memory_->keepLook(theme().light, fontScale());
    }
    QMainWindow::closeEvent(event);
}

void MainWindow::resetLayout() {
    arranged_ = false;
    if (memory_) memory_->forgetLayout();
    restoreState(firstState_);
    placeRunStrip();
    documentArrived();
    if (workspace_.document()) arrange();
}

void MainWindow::setLight(bool light) {
    setTheme(light);
    qApp->setFont(uiFont(kBasePixels));
    qApp->setStyleSheet(theme().styleSheet());
    for (const QDockWidget* each : docks_) panelOf(each).applyTheme();
    livePanel_->applyTheme();
}

void MainWindow::setTextScale(double scale) {
    setFontScale(scale);
    setLight(theme().light);
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
    if (event->mimeData()->hasUrls()) event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent* event) {
    const QList<QUrl> urls = event->mimeData()->urls();
    if (!urls.isEmpty() && urls.front().isLocalFile()) open(urls.front().toLocalFile());
}

}  // namespace hw::viewer

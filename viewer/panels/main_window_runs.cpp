// SPDX-License-Identifier: GPL-3.0-or-later
// What runs in other processes while the window looks on: recordings, and training under a plan or
// within a budget.
#include <QHBoxLayout>
#include <QToolBar>
#include <algorithm>

#include "viewer/panels/live_bar.h"
#include "viewer/panels/main_window.h"
#include "viewer/panels/recording_bar.h"

namespace hw::viewer {
namespace {

// Of its tabs, which Qt calls visible all of them.
bool isOnTop(const QWidget& panel) {
    const QWidget& window = *panel.window();
    const QWidget* there = window.childAt(panel.mapTo(&window, panel.rect().center()));
    return there == &panel || panel.isAncestorOf(there);
}

}  // namespace

// A row of its own, so that the buttons stay where they are when something begins to run.
void MainWindow::buildRunStrip() {
    runs_ = new QToolBar;
    runs_->setObjectName(QStringLiteral("runStrip"));
    runs_->setMovable(false);
    runs_->setContextMenuPolicy(Qt::PreventContextMenu);
    auto* row = new QWidget;
    row->setObjectName(QStringLiteral("runRow"));
    auto* bars = new QHBoxLayout(row);
    bars->setContentsMargins(11, 0, 11, 0);
    bars->setSpacing(24);
    auto* live = new LiveBar(live_);
    connect(live, &LiveBar::closed, this, [this] {
        liveClosed_ = true;
        placeLiveDock();
    });
    for (RunBar* bar : std::initializer_list<RunBar*>{new RecordingBar(recorder_), live}) {
        bars->addWidget(bar);
        connect(bar, &RunBar::shown, this, &MainWindow::placeRunStrip);
    }
    runs_->addWidget(row);
    addToolBarBreak();
    addToolBar(runs_);
    runs_->hide();
}

// Also after a layout was restored, which knows of tool bars and not of what runs.
void MainWindow::placeRunStrip() {
    const auto bars = runs_->findChildren<RunBar*>();
    runs_->setVisible(
        std::any_of(bars.begin(), bars.end(), [](const RunBar* bar) { return !bar->isHidden(); }));
}

// The window follows what is recorded, step by step, and opens it for good when it is complete.
void MainWindow::connectRecorder() {
    connect(empty_, &EmptyState::recordRequested, attach_, &AttachDialog::open);
    // Without a window manager nothing else gives the focus back to the window.
    connect(attach_, &QDialog::finished, this, [this] { activateWindow(); });
    connect(&recorder_, &Recorder::stepRecorded, &workspace_.loader(), &DocumentLoader::follow);
    connect(&recorder_, &Recorder::finished, this,
            [this](const QString& session, const QStringList& notes) {
                open(session);
                activity_->setText(notes.join(QStringLiteral(" · ")));
            });
    connect(&recorder_, &Recorder::failed, this, [this](const QString& what, const QString& hint) {
        if (recorder_.steps() > 0) open(recorder_.session());
        if (!attach_->isVisible()) showFailure(what, hint);
    });
}

void MainWindow::connectLive() {
    connect(train_, &QDialog::finished, this, [this] { activateWindow(); });
    connect(&live_, &LiveRun::stepped, this, &MainWindow::showLive);
    connect(&live_, &LiveRun::changed, this, [this] {
        if (live_.busy()) liveClosed_ = false;
        placeLiveDock();
    });
    connect(&live_, &LiveRun::finished, this, &MainWindow::endLive);
    connect(&live_, &LiveRun::failed, this, [this](const QString& what, const QString& hint) {
        endLive();
        if (live_.terms() && live_.began()) return;  // it says so itself
        if (!train_->isVisible() && !attach_->isVisible()) showFailure(what, hint);
    });
}

// A tab beside the timeline; without a session all of the window.
void MainWindow::buildLiveDock() {
    livePanel_ = new LivePanel(live_);
    liveDock_ = new QDockWidget(tr("Live run"));
    liveDock_->setObjectName(QStringLiteral("liveRun"));
    liveDock_->setWidget(livePanel_);
    liveDock_->setTitleBarWidget(livePanel_->header());
    liveDock_->setFeatures(QDockWidget::DockWidgetMovable | QDockWidget::DockWidgetFloatable);
    tabifyDockWidget(firstDock(PanelArea::Upper), liveDock_);
    raiseFirstDocks();
    liveDock_->hide();
}

void MainWindow::placeLiveDock() {
    const bool shown = live_.terms() && live_.began() && !liveClosed_;
    if (shown == liveDock_->isHidden()) {
        QDockWidget* upper = shown ? liveDock_ : firstDock(PanelArea::Upper);
        const bool raise = shown || isOnTop(*livePanel_);
        liveDock_->setVisible(shown);
        // Once the layout has heard of it.
        if (raise) QMetaObject::invokeMethod(upper, &QWidget::raise, Qt::QueuedConnection);
    }
    empty_->setVisible(!workspace_.document() && !shown);
}

void MainWindow::trainUnderPlan() {
    if (live_.busy())
        return live_.budget()
                   ? showFailure(tr("%1 trains within a budget already").arg(live_.target()),
                                 tr("stop that first; it goes on without its budget"))
               : live_.terms()
                   ? showFailure(tr("the rescue of %1 is at work").arg(live_.target()),
                                 tr("stop that first; it goes on without it"))
                   : showFailure(tr("%1 trains under a plan already").arg(live_.target()),
                                 tr("stop that first; it goes on without its plan"));
    if (planActions_->needsPlan()) train_->open();
}

bool MainWindow::showsStepOf(const PlannedStep& planned) const {
    const DocumentPointer& document = workspace_.document();
    return document && toQString(document->path) == planned.session &&
           document->step == planned.step;
}

void MainWindow::showLive() {
    const PlannedStep& planned = live_.planned();
    if (!showsStepOf(planned) || live_.progress().curve().empty()) return;
    workspace_.showLive(std::make_shared<const StepCurve>(
        measuredCurve(planned.plan->curve, live_.progress().curve())));
}

// The session keeps what was measured, for Compare.
void MainWindow::endLive() {
    workspace_.showLive(nullptr);
    if (live_.progress().planned() > 0 && showsStepOf(live_.planned())) workspace_.reload();
}

}  // namespace hw::viewer

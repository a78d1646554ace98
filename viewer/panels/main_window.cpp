// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/panels/main_window.h"

#include <QAction>
#include <QApplication>
#include <QDragEnterEvent>
#include <QFileDialog>
#include <QFileInfo>
#include <QKeyEvent>
#include <QMessageBox>
#include <QMimeData>
#include <QStatusBar>
#include <QToolBar>
#include <utility>

#include "viewer/export/picture.h"
#include "viewer/export/report.h"
#include "viewer/panels/file_dialog.h"
#include "viewer/panels/recording_bar.h"
#include "viewer/plots/theme.h"

namespace hw::viewer {

MainWindow::MainWindow(QWidget* parent) : QMainWindow(parent) {
    setWindowTitle(QStringLiteral("Highwater"));
    setAcceptDrops(true);
    setDockNestingEnabled(true);
    resize(1680, 1000);
    empty_ = new EmptyState;
    timeline_ = new TimelinePanel(workspace_);
    whatIf_ = new WhatIfPanel(workspace_);
    compare_ = new ComparePanel(workspace_);
    layers_ = new LayersPanel(workspace_);
    trace_ = new TracePanel(workspace_);
    peak_ = new PeakPanel(workspace_);
    map_ = new MapPanel(workspace_);
    plan_ = new PlanPanel(workspace_);
    steps_ = new StepsPanel(workspace_);
    attach_ = new AttachDialog(recorder_, this);
    planActions_ = new PlanActions(workspace_, this);
    setCentralWidget(empty_);
    buildToolBar();
    buildDocks();
    buildStatusBar();
    connectWorkspace();
    connectRecorder();
    documentArrived();
}

QAction* MainWindow::action(const QString& text, const QKeySequence& key, const QString& tip) {
    auto* made = new QAction(text, this);
    made->setShortcut(key);
    made->setToolTip(tip + QStringLiteral(" (%1)").arg(key.toString(QKeySequence::NativeText)));
    addAction(made);
    return made;
}

void MainWindow::buildToolBar() {
    auto* bar = new QToolBar;
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
    bar->addWidget(new RecordingBar(recorder_));

    QAction* record = action(tr("Record…"), QKeySequence(QStringLiteral("Ctrl+R")),
                             tr("Attach to a training process, or start one"));
    QAction* open = action(tr("Open…"), QKeySequence::Open, tr("Open a session or a log"));
    QAction* plan = action(tr("Plan"), Qt::Key_P, tr("Plan at the budget with every planner"));
    QAction* keep = action(tr("Export plan"), QKeySequence(QStringLiteral("Ctrl+E")),
                           tr("Write the plan that is drawn to a file"));
    QAction* run = action(tr("Run plan"), QKeySequence(QStringLiteral("Ctrl+Return")),
                          tr("Run the plan natively and compare every result"));
    QAction* report =
        action(tr("Report"), Qt::Key_R, tr("Write the story of this step as HTML or PDF"));
    QAction* picture =
        action(tr("Save picture"), Qt::Key_S, tr("Save the window as PNG, SVG or PDF"));
    QAction* appearance = action(tr("Theme"), Qt::Key_T, tr("Dark or light"));
    QAction* help = action(tr("Help"), QKeySequence(QStringLiteral("?")), tr("Keys"));
    for (QAction* shown : {record, open, plan, keep, run, report, picture, appearance, help})
        bar->addAction(shown);
    addToolBar(Qt::TopToolBarArea, bar);

    QAction* closer = action(tr("Zoom in"), QKeySequence(QStringLiteral("+")), tr("Zoom in"));
    closer->setShortcuts({QKeySequence(QStringLiteral("+")), QKeySequence(QStringLiteral("="))});
    QAction* wider = action(tr("Zoom out"), Qt::Key_Minus, tr("Zoom out"));
    QAction* whole = action(tr("Whole step"), Qt::Key_0, tr("Show the whole step"));
    QAction* budget = action(tr("Budget"), Qt::Key_B, tr("Move the budget with the arrow keys"));
    connect(record, &QAction::triggered, attach_, &AttachDialog::open);
    connect(open, &QAction::triggered, this, &MainWindow::chooseFile);
    connect(plan, &QAction::triggered, &workspace_, &Workspace::planEvery);
    connect(keep, &QAction::triggered, planActions_, &PlanActions::exportPlan);
    connect(run, &QAction::triggered, planActions_, &PlanActions::runPlan);
    connect(report, &QAction::triggered, this, &MainWindow::writeReport);
    connect(picture, &QAction::triggered, this, &MainWindow::savePicture);
    connect(appearance, &QAction::triggered, this, [this] { setLight(!theme().light); });
    connect(help, &QAction::triggered, this, &MainWindow::showHelp);
    connect(closer, &QAction::triggered, this, [this] { timeline_->plot().zoom(1.5); });
    connect(wider, &QAction::triggered, this, [this] { timeline_->plot().zoom(1 / 1.5); });
    connect(whole, &QAction::triggered, this, [this] { timeline_->plot().resetZoom(); });
    connect(budget, &QAction::triggered, this, [this] { whatIf_->slider().setFocus(); });
    documentActions_ = {plan, keep, run, report, picture, closer, wider, whole, budget};
}

QDockWidget* MainWindow::dock(Panel* panel, const QString& name) {
    auto* made = new QDockWidget(panel->title());
    made->setObjectName(name);  // by which a layout would be stored
    made->setWidget(panel);
    made->setTitleBarWidget(panel->header());
    made->setFeatures(QDockWidget::DockWidgetMovable | QDockWidget::DockWidgetFloatable);
    docks_.push_back(made);
    return made;
}

void MainWindow::buildDocks() {
    QDockWidget* layers = dock(layers_, QStringLiteral("layers"));
    QDockWidget* timeline = dock(timeline_, QStringLiteral("timeline"));
    QDockWidget* whatIf = dock(whatIf_, QStringLiteral("whatif"));
    QDockWidget* compare = dock(compare_, QStringLiteral("compare"));
    addDockWidget(Qt::LeftDockWidgetArea, layers);
    splitDockWidget(layers, timeline, Qt::Horizontal);
    splitDockWidget(timeline, whatIf, Qt::Vertical);
    splitDockWidget(whatIf, compare, Qt::Horizontal);
    stepsDock_ = dock(steps_, QStringLiteral("steps"));
    splitDockWidget(timeline, stepsDock_, Qt::Vertical);
    setTabPosition(Qt::AllDockWidgetAreas, QTabWidget::North);
    QDockWidget* peak = dock(peak_, QStringLiteral("peak"));
    QDockWidget* trace = dock(trace_, QStringLiteral("trace"));
    tabifyDockWidget(timeline, peak);
    tabifyDockWidget(peak, dock(map_, QStringLiteral("map")));
    tabifyDockWidget(peak, trace);
    tabifyDockWidget(compare, dock(plan_, QStringLiteral("plan")));
    compare->raise();
    timeline->raise();
    // Where a tab says the name, the line above the view need not.
    for (QDockWidget* each : docks_)
        if (!tabifiedDockWidgets(each).isEmpty())
            each->titleBarWidget()->findChild<QLabel*>(QStringLiteral("panelTitle"))->hide();
}

void MainWindow::arrange() {
    const int side = std::clamp(width() / 5, 300, 400), rest = std::max(600, width() - side);
    resizeDocks({docks_[0], docks_[1]}, {side, rest}, Qt::Horizontal);
    if (!workspace_.document()->plannable) return;
    resizeDocks({docks_[2], docks_[3]}, {rest * 42 / 100, rest * 58 / 100}, Qt::Horizontal);
    const int upper = height() * 54 / 100, lower = height() - upper, strip = height() * 16 / 100;
    if (stepsDock_->isHidden())
        resizeDocks({docks_[1], docks_[2]}, {upper, lower}, Qt::Vertical);
    else
        resizeDocks({docks_[1], stepsDock_, docks_[2]}, {upper - strip, strip, lower},
                    Qt::Vertical);
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
    keys->setMinimumWidth(1);  // on a narrow window the hints give way
    statusBar()->setSizeGripEnabled(false);
    statusBar()->addWidget(status_);
    statusBar()->addWidget(activity_);
    statusBar()->addPermanentWidget(keys);
}

void MainWindow::connectWorkspace() {
    connect(planActions_, &PlanActions::failed, this, &MainWindow::showFailure);
    connect(planActions_, &PlanActions::told, activity_, &QLabel::setText);
    connect(empty_, &EmptyState::openRequested, this, &MainWindow::chooseFile);
    connect(&workspace_, &Workspace::documentChanged, this, &MainWindow::documentArrived);
    connect(&workspace_, &Workspace::failed, this, &MainWindow::showFailure);
    connect(&workspace_, &Workspace::busyChanged, this, [this](int pending, const QString& what) {
        activity_->setText(pending == 0   ? QString()
                           : pending == 1 ? what + QStringLiteral("…")
                                          : tr("%1 · %2 left · Esc stops").arg(what).arg(pending));
    });
}

// The window follows what is recorded, step by step, and opens it for good when it is complete.
void MainWindow::connectRecorder() {
    connect(empty_, &EmptyState::recordRequested, attach_, &AttachDialog::open);
    connect(&recorder_, &Recorder::stepRecorded, &workspace_, &Workspace::follow);
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

void MainWindow::documentArrived() {
    const DocumentPointer& document = workspace_.document();
    const bool any = document != nullptr;
    empty_->setVisible(!any);
    // A trace without a step has no plans to show.
    for (QDockWidget* each : docks_) {
        const auto* panel = static_cast<const Panel*>(each->widget());
        each->setVisible(any && (document->plannable || !panel->needsStep()));
    }
    for (QAction* needs : documentActions_) needs->setEnabled(any);
    if (!any) {
        title_->clear();
        status_->setText(tr("no session open"));
        return;
    }
    docks_[0]->setVisible(!document->graph.layers.empty());  // nothing to list without layers
    stepsDock_->setVisible(document->overview.size() > 1 || workspace_.following());
    const bool fresh = std::exchange(shown_, document->path) != document->path;
    if (fresh) arrange();
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
    docks_[1]->raise();
    timeline_->setFocus();
}

void MainWindow::showFailure(const QString& what, const QString& hint) {
    if (!workspace_.document()) return empty_->setProblem(what, hint);
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
    return whatIf_->prepareShot(plans);
}

void MainWindow::setLight(bool light) {
    setTheme(light);
    qApp->setStyleSheet(theme().styleSheet());
    for (Panel* panel : std::initializer_list<Panel*>{timeline_, whatIf_, compare_, layers_, trace_,
                                                      peak_, map_, plan_, steps_})
        panel->applyTheme();
}

void MainWindow::chooseFile() {
    const QString path = QFileDialog::getOpenFileName(
        this, tr("Open"), {}, tr("Sessions and logs (*.hws *.log *.log.gz);;All files (*)"));
    if (!path.isEmpty()) open(path);
}

void MainWindow::savePicture() {
    askToSave(this, tr("Save picture"), QStringLiteral("highwater.png"),
              tr("Pictures (*.png *.svg *.pdf)"), QStringLiteral("png"),
              [this](const QString& path) {
                  if (core::Status saved = savePictureOf(*this, path.toStdString(), 2); !saved)
                      showFailure(toQString(saved.error().what), toQString(saved.error().hint));
                  else
                      activity_->setText(tr("saved %1").arg(path));
              });
}

void MainWindow::writeReport() {
    askToSave(this, tr("Write report"),
              QFileInfo(workspace_.document()->name).completeBaseName() + QStringLiteral(".html"),
              tr("Reports (*.html *.pdf)"), QStringLiteral("html"), [this](const QString& path) {
                  if (core::Status saved = saveReport(workspace_, path.toStdString()); !saved)
                      showFailure(toQString(saved.error().what), toQString(saved.error().hint));
                  else
                      activity_->setText(tr("saved %1").arg(path));
              });
}

void MainWindow::showHelp() {
    auto* box = new QMessageBox(this);
    box->setWindowTitle(tr("Keys"));
    box->setTextFormat(Qt::RichText);
    box->setText(
        tr("<table cellspacing='6'>"
           "<tr><td><b>← →</b></td><td>previous, next op</td></tr>"
           "<tr><td><b>+ −</b></td><td>zoom the timeline (the wheel too; drag to move)</td></tr>"
           "<tr><td><b>Shift</b> + drag</td><td>choose a stretch of time: Peak shows its highest "
           "moment</td></tr>"
           "<tr><td><b>0</b></td><td>the whole step</td></tr>"
           "<tr><td><b>B</b></td><td>move the budget, then ← →</td></tr>"
           "<tr><td><b>P</b></td><td>plan at the budget</td></tr>"
           "<tr><td><b>Esc</b></td><td>stop planning</td></tr>"
           "<tr><td><b>Ctrl+E</b></td><td>export the plan that is drawn</td></tr>"
           "<tr><td><b>Ctrl+Enter</b></td><td>run it and compare every result</td></tr>"
           "<tr><td><b>R</b></td><td>write a report</td></tr>"
           "<tr><td><b>S</b></td><td>save a picture</td></tr>"
           "<tr><td><b>Ctrl+R</b></td><td>record a training run</td></tr>"
           "<tr><td><b>Ctrl+O</b></td><td>open a session or a log</td></tr>"
           "<tr><td><b>T</b></td><td>dark or light</td></tr></table>"));
    box->setAttribute(Qt::WA_DeleteOnClose);
    box->open();
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

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
    if (event->mimeData()->hasUrls()) event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent* event) {
    const QList<QUrl> urls = event->mimeData()->urls();
    if (!urls.isEmpty() && urls.front().isLocalFile()) open(urls.front().toLocalFile());
}

}  // namespace hw::viewer

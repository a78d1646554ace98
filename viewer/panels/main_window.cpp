// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/panels/main_window.h"

#include <QApplication>
#include <QDragEnterEvent>
#include <QKeyEvent>
#include <QMessageBox>
#include <QMimeData>
#include <QPainter>
#include <QScreen>
#include <QStatusBar>
#include <QToolBar>
#include <QToolButton>
#include <algorithm>
#include <iterator>
#include <utility>

#include "viewer/panels/compare_panel.h"
#include "viewer/panels/whatif_panel.h"
#include "viewer/plots/font_scale.h"
#include "viewer/plots/theme.h"

namespace hw::viewer {
namespace {

// For what a tool bar has no room for.
QIcon chevrons(const QColor& colour) {
    constexpr int kSize = 16, kScale = 2;
    QPixmap drawn(kSize * kScale, kSize * kScale);
    drawn.setDevicePixelRatio(kScale);
    drawn.fill(Qt::transparent);
    QPainter painter(&drawn);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(QPen(colour, 1.6));
    for (const double left : {3.5, 8.5})
        painter.drawPolyline(QPolygonF{QPointF(left, 4), QPointF(left + 4, 8), QPointF(left, 12)});
    return drawn;
}

}  // namespace

MainWindow::MainWindow(QWidget* parent) : QMainWindow(parent) {
    setWindowTitle(QStringLiteral("Highwater"));
    setAcceptDrops(true);
    setDockNestingEnabled(true);
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
    layout()->activate();  // with all docks hidden it asks for less than while they were made
    resize(firstSize(screen()->availableSize()));
}

QDockWidget* MainWindow::makeDock(const PanelKind& kind) {
    Panel* panel = kind.make(workspace_);
    auto* made = new QDockWidget(panel->title());
    made->setObjectName(QLatin1String(kind.name));  // by which layouts are kept
    made->setWidget(panel);
    made->setTitleBarWidget(panel->header());
    made->installEventFilter(this);
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
    split(PanelArea::Side, PanelArea::SideLower, Qt::Vertical);
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
    buildContextMenus();
}

void MainWindow::raiseFirstDocks() {
    for (QDockWidget* each : docks_)
        if (each == firstDock(panelOf(each).kind().area)) each->raise();
}

void MainWindow::buildStatusBar() {
    status_ = new QLabel;
    status_->setObjectName(QStringLiteral("muted"));
    activity_ = new ElidingLabel;
    activity_->setObjectName(QStringLiteral("activity"));
    auto* keys = new ElidingLabel;
    keys->setText(
        tr("← → op · W S zoom · A D move · F to the selection · Ctrl+F find · B budget · P plan · "
           "? help"));
    keys->setObjectName(QStringLiteral("muted"));
    status_->setContentsMargins(14, 0, 0, 0);
    keys->setContentsMargins(0, 0, 14, 0);
    keys->setMinimumWidth(1);  // on a narrow window
    connect(status_, &QLabel::linkActivated, this, &MainWindow::showGaps);
    statusBar()->setSizeGripEnabled(false);
    statusBar()->addWidget(status_);
    statusBar()->addWidget(activity_, 1);
    statusBar()->addPermanentWidget(keys);
}

void MainWindow::connectWorkspace() {
    connect(planActions_, &PlanActions::failed, this, &MainWindow::showFailure);
    connect(planActions_, &PlanActions::runnerKnown, this, [this](const QString& text, bool runs) {
        panel<ComparePanel>().setRunner(text, runs);
    });
    // Where the outcome of a run is to be read.
    connect(planActions_, &PlanActions::finishedRun, this,
            [this] { firstDock(PanelArea::LowerRight)->raise(); });
    connect(planActions_, &PlanActions::told, activity_, &QLabel::setText);
    connect(empty_, &EmptyState::openRequested, this, &MainWindow::chooseFile);
    connect(empty_, &EmptyState::sampleRequested, this, [this] {
        openSample();
        startTour();
    });
    connect(&workspace_, &Workspace::documentChanged, this, &MainWindow::documentArrived);
    connect(&workspace_, &Workspace::failed, this, &MainWindow::showFailure);
    connect(&workspace_.loader(), &DocumentLoader::failed, this, &MainWindow::showFailure);
    connect(&workspace_, &Workspace::budgetChanged, this, [this] {
        if (memory_ && workspace_.document() && workspace_.document()->plannable)
            memory_->keepBudgetRatio(QString::fromStdString(workspace_.document()->path),
                                     workspace_.budgetRatio());
    });
    connect(&workspace_, &Workspace::busyChanged, this, [this](int pending, const QString& what) {
        activity_->setText(pending == 0   ? QString()
                           : pending == 1 ? what + QStringLiteral("…")
                                          : tr("%1 · %2 left · Esc stops").arg(what).arg(pending));
        if (pending == 0) offerBudget();
    });
}

void MainWindow::documentArrived() {
    const DocumentPointer& document = workspace_.document();
    const bool any = document != nullptr;
    placeLiveDock();
    showDocks();
    for (QAction* needs : documentActions_) needs->setEnabled(any);
    if (!any) {
        title_->clear();
        status_->setText(tr("no session open"));
        status_->setTextInteractionFlags(Qt::NoTextInteraction);
        return;
    }
    const bool fresh = std::exchange(shown_, document->path) != document->path;
    if (fresh) placeDocks();
    if (fresh && memory_) rememberDocument();
    QStringList parts{document->name};
    parts << (!document->plannable ? tr("no step, nothing to plan")
              : document->steps > 1
                  ? tr("step %1 (%2 recorded)").arg(document->step).arg(document->steps)
                  : tr("step %1").arg(document->step));
    if (!document->device.isEmpty()) parts << document->device;
    title_->setText(parts.join(QStringLiteral("    ")));
    setWindowTitle(document->name + QStringLiteral(" – Highwater"));
    const QString storages = document->knowsPeakOnly()
                                 ? tr("%L1 storages, the %L2 live at the peak loaded")
                                       .arg(document->storages)
                                       .arg(document->graph.storages.size())
                                 : tr("%1 storages").arg(document->storages);
    status_->setText(tr("%1 ops · %2 · %3 costs · %4")
                         .arg(document->graph.ops.size())
                         .arg(storages)
                         .arg(toQString(core::costSetName(document->graph.costs)),
                              document->gaps == 0 ? tr("no gaps") : gapsLink()));
    // Without a link there is nothing to go to.
    status_->setTextInteractionFlags(
        document->gaps == 0 ? Qt::TextInteractionFlags(Qt::NoTextInteraction)
                            : Qt::LinksAccessibleByMouse | Qt::LinksAccessibleByKeyboard);
    if (!fresh) return;
    if (document->plannable && !workspace_.state().chosen) firstBudget_ = workspace_.budget();
    raiseFirstDocks();
    firstDock(PanelArea::Upper)->widget()->setFocus();
}

// A session opens at a share of its peak that may be out of every planner's reach.
void MainWindow::offerBudget() {
    if (!firstBudget_ || !workspace_.document() || workspace_.loader().following()) return;
    const bool moved = workspace_.budget() != std::exchange(firstBudget_, std::nullopt);
    if (moved || workspace_.active().plan()) return;
    const Answer answer = workspace_.plans().answer(workspace_.budget());
    if (answer.kind != Answer::Kind::Nearest || !answer.plan) return;
    workspace_.setBudget(answer.plan->peak);
    activity_->setText(tr("no plan is known for less than %1")
                           .arg(workspace_.document()->size.text(answer.plan->peak)));
}

QString MainWindow::gapsLink() const {
    const qsizetype gaps = workspace_.document()->gaps;
    return QStringLiteral("<a href='gaps' style='color:%1'>%2</a>")
        .arg(theme().accent.name(), gaps == 1 ? tr("1 gap") : tr("%1 gaps").arg(gaps));
}

void MainWindow::showGaps() {
    constexpr std::size_t kMost = 200;
    QStringList gaps;
    const std::vector<core::GapRow>& rows = workspace_.document()->gapRows;
    for (std::size_t i = 0; i < std::min(kMost, rows.size()); ++i)
        gaps << QStringLiteral("<b>%1</b>: %2")
                    .arg(toQString(rows[i].what).toHtmlEscaped(),
                         toQString(rows[i].why).toHtmlEscaped());
    if (rows.size() > kMost) gaps << tr("and %1 more").arg(rows.size() - kMost);
    auto* box = new QMessageBox(this);
    box->setObjectName(QStringLiteral("gaps"));
    box->setWindowTitle(tr("What was not recorded"));
    box->setTextFormat(Qt::RichText);
    box->setText(gaps.join(QStringLiteral("<br>")));
    box->setAttribute(Qt::WA_DeleteOnClose);
    box->open();
}

// The budget too is as it was left, unless the document came with a plan of its own.
void MainWindow::rememberDocument() {
    const QString path = QString::fromStdString(workspace_.document()->path);
    const std::optional<double> kept = memory_->budgetRatio(path);
    if (kept && !workspace_.state().chosen) workspace_.placeBudget(*kept);
    memory_->remember(path);
    fillRecent();
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
    workspace_.loader().open(path, plans);
}

core::Status MainWindow::prepareShot(const std::string& session,
                                     const std::vector<std::string>& plans,
                                     std::optional<std::int64_t> step, const std::string& device) {
    if (core::Status done = workspace_.loader().openNow(session, plans, step, device); !done)
        return done;
    return panel<WhatIfPanel>().compute();
}

// The arrows are no shortcuts: a focused slider or table keeps them for itself.
void MainWindow::keyPressEvent(QKeyEvent* event) {
    const bool stretch = event->modifiers() & Qt::ShiftModifier;
    SelectionModel& selection = workspace_.selection();
    switch (event->key()) {
        case Qt::Key_Left:
            return stretch ? selection.stretchRange(-1) : selection.stepOp(-1);
        case Qt::Key_Right:
            return stretch ? selection.stretchRange(1) : selection.stepOp(1);
        case Qt::Key_Escape:
            if (!workspace_.busy()) selection.selectRange(std::nullopt);
            return workspace_.cancel();
        default:
            QMainWindow::keyPressEvent(event);
    }
}

void MainWindow::setLight(bool light) {
    setTheme(light);
    qApp->setFont(uiFont(kBasePixels));
    qApp->setStyleSheet(theme().styleSheet());
    for (const QDockWidget* each : docks_) panelOf(each).applyTheme();
    livePanel_->applyTheme();
    // Qt draws it dark, whatever is behind it.
    tools_->findChild<QToolButton*>(QStringLiteral("qt_toolbar_ext_button"))
        ->setIcon(chevrons(theme().text));
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

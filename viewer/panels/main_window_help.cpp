// SPDX-License-Identifier: GPL-3.0-or-later
// How the window explains itself: its keys, its views, a tour and a sample; and the way back from
// what was tried.
#include <QApplication>
#include <QDir>
#include <QFile>
#include <QMessageBox>
#include <QStandardPaths>
#include <utility>

#include "viewer/panels/main_window.h"
#include "viewer/panels/timeline_panel.h"

namespace hw::viewer {

void MainWindow::showKeys() {
    auto* box = new QMessageBox(this);
    box->setWindowTitle(tr("Keys"));
    box->setTextFormat(Qt::RichText);
    box->setText(
        tr("<table cellspacing='6'>"
           "<tr><td><b>← →</b></td><td>previous, next op</td></tr>"
           "<tr><td><b>Ctrl+F</b></td><td>find an op, a tensor, a layer or a source "
           "line</td></tr>"
           "<tr><td><b>I</b>, <b>F</b></td><td>inspect what is selected, zoom to it</td></tr>"
           "<tr><td><b>W S</b>, <b>+ −</b></td><td>zoom the plot with the keys, else the "
           "timeline</td></tr>"
           "<tr><td><b>A D</b></td><td>move it (or drag)</td></tr>"
           "<tr><td><b>Shift</b> + drag, <b>Shift</b> + ← →</td><td>measure a stretch of time: "
           "what comes and goes, its highest moment, and that in Peak</td></tr>"
           "<tr><td><b>0</b></td><td>the whole step</td></tr>"
           "<tr><td><b>M</b></td><td>one view alone (a double click on its name too), and "
           "back</td></tr>"
           "<tr><td><b>B</b></td><td>move the budget, then ← →</td></tr>"
           "<tr><td><b>P</b></td><td>plan at the budget</td></tr>"
           "<tr><td><b>Esc</b></td><td>stop planning</td></tr>"
           "<tr><td><b>Ctrl+Z</b>, <b>Ctrl+Shift+Z</b></td><td>back to what was looked at before, "
           "forward again</td></tr>"
           "<tr><td><b>Ctrl+E</b></td><td>export the plan that is drawn</td></tr>"
           "<tr><td><b>Ctrl+Enter</b></td><td>run it and compare every result</td></tr>"
           "<tr><td><b>Ctrl+T</b></td><td>train under it</td></tr>"
           "<tr><td><b>R</b></td><td>write a report</td></tr>"
           "<tr><td><b>Ctrl+S</b></td><td>save a picture; in a table, its rows</td></tr>"
           "<tr><td><b>/</b></td><td>filter a table</td></tr>"
           "<tr><td><b>Ctrl+R</b></td><td>record a training run</td></tr>"
           "<tr><td><b>Ctrl+O</b></td><td>open a session or a log</td></tr>"
           "<tr><td><b>T</b></td><td>dark or light</td></tr>"
           "<tr><td><b>Ctrl + −</b></td><td>larger, smaller text</td></tr>"
           "<tr><td><b>F1</b></td><td>explain the view that has the keys</td></tr>"
           "<tr><td><b>Ctrl+Shift+P</b></td><td>find any command by its name</td></tr></table>"));
    box->setAttribute(Qt::WA_DeleteOnClose);
    box->open();
}

// Of the view that has the keys, else of the one under the pointer, else of the upper one.
void MainWindow::showContextHelp() {
    const QDockWidget* view = viewWithKeys();
    auto* box = new QMessageBox(this);
    box->setObjectName(QStringLiteral("contextHelp"));
    box->setWindowTitle(view->windowTitle());
    box->setTextFormat(Qt::RichText);
    box->setText(
        QStringLiteral("<h3>%1</h3>%2").arg(view->windowTitle(), view->widget()->whatsThis()));
    box->setAttribute(Qt::WA_DeleteOnClose);
    box->open();
}

void MainWindow::connectHistory() {
    TimelinePlot& plot = panel<TimelinePanel>().plot();
    history_ = new ViewHistory(
        [this, &plot] {
            const QCPRange seen = plot.visibleTime();
            const bool whole = plot.showsWhole();
            return ViewState{workspace_.state(), whole ? 0 : seen.lower, whole ? 0 : seen.upper};
        },
        [this, &plot](const ViewState& state) {
            workspace_.setState(state.shared);
            if (state.end > state.begin)
                plot.showTime({state.begin, state.end});
            else
                plot.resetZoom();
        },
        this);
    connect(&workspace_, &Workspace::documentChanged, history_, &ViewHistory::clear);
    connect(&workspace_, &Workspace::budgetChanged, history_, &ViewHistory::note);
    connect(&workspace_.selection(), &SelectionModel::selectionChanged, history_,
            &ViewHistory::note);
    connect(&workspace_.selection(), &SelectionModel::rangeChanged, history_, &ViewHistory::note);
    connect(&workspace_.active(), &ActivePlan::planChanged, history_, &ViewHistory::note);
    connect(&plot, &TimelinePlot::visibleTimeChanged, history_, &ViewHistory::note);
}

// A copy, because a run of a plan is stored in the session.
void MainWindow::openSample() {
    const QDir folder(QStandardPaths::writableLocation(QStandardPaths::AppDataLocation));
    const QString path = folder.filePath(QStringLiteral("transformer.hws"));
    if (!QFile::exists(path)) {
        QFile packed(QStringLiteral(":/highwater/transformer.hws"));
        if (!folder.mkpath(QStringLiteral(".")) || !packed.copy(path))
            return showFailure(tr("cannot write %1").arg(path),
                               tr("make room there, or open another session"));
        QFile::setPermissions(path, QFileDevice::ReadOwner | QFileDevice::WriteOwner);
    }
    open(path);
}

void MainWindow::startTour() {
    if (!workspace_.document()) {  // it is on its way
        connect(&workspace_, &Workspace::documentChanged, this, &MainWindow::startTour,
                static_cast<Qt::ConnectionType>(Qt::QueuedConnection | Qt::SingleShotConnection));
        return;
    }
    delete tour_;
    std::vector<Tour::Stop> stops;
    for (QDockWidget* each : docks_)
        if (const PanelKind& kind = panelOf(each).kind(); kind.tourTitle)
            stops.push_back({each, viewText(kind.tourTitle), viewText(kind.tourText)});
    stops.push_back(
        {firstDock(PanelArea::Upper), tr("And now yours"),
         tr("<b>Ctrl+R</b> records a training run that is under way, or starts one; <b>Ctrl+T</b> "
            "trains under the plan that is drawn. <b>F1</b> explains a view, <b>?</b> lists the "
            "keys, <b>Ctrl+Z</b> goes back.")});
    tour_ = new Tour(this, std::move(stops));
}

void MainWindow::welcome() {
    if (!memory_ || memory_->welcomed()) return;
    memory_->setWelcomed();
    openSample();
    startTour();
}

}  // namespace hw::viewer

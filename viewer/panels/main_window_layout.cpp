// SPDX-License-Identifier: GPL-3.0-or-later
// Where the views are: at first, as they were left, and one of them alone.
#include <QApplication>
#include <QMouseEvent>
#include <QStatusBar>
#include <algorithm>
#include <utility>

#include "viewer/panels/main_window.h"
#include "viewer/plots/font_scale.h"
#include "viewer/plots/theme.h"

namespace hw::viewer {
namespace {

constexpr double kUpperShare = 0.56;  // of what the docks have: the timeline leads
constexpr double kInspectorShare = 0.48;
constexpr int kStripHeight = 112;  // header and one row of steps

}  // namespace

void MainWindow::setVisible(bool visible) {
    const QSize wanted = size();
    const bool appears = visible && !testAttribute(Qt::WA_WState_Created);
    QMainWindow::setVisible(visible);
    if (!appears) return;
    const auto keep = [this, wanted] {
        if (!isMaximized() && !isFullScreen()) resize(wanted);
    };
    keep();
    QMetaObject::invokeMethod(this, keep, Qt::QueuedConnection);
}

void MainWindow::arrange() {
    QDockWidget* upper = firstDock(PanelArea::Upper);
    QDockWidget* strip = firstDock(PanelArea::Strip);
    QDockWidget* lower = firstDock(PanelArea::LowerLeft);
    const int side = std::clamp(width() / 5, std::min(300, width() * 22 / 100), 400);
    const int rest = width() - side;
    const int all = height() - tools_->height() - statusBar()->height();
    resizeDocks({firstDock(PanelArea::Side), upper}, {side, rest}, Qt::Horizontal);
    const int inspected = static_cast<int>(all * kInspectorShare);
    resizeDocks({firstDock(PanelArea::Side), firstDock(PanelArea::SideLower)},
                {all - inspected, inspected}, Qt::Vertical);
    if (!workspace_.document()->plannable) return;
    resizeDocks({lower, firstDock(PanelArea::LowerRight)}, {rest * 42 / 100, rest * 58 / 100},
                Qt::Horizontal);
    const int above = static_cast<int>(all * kUpperShare);
    const int low = strip->isHidden() ? 0 : kStripHeight;
    if (low == 0)
        resizeDocks({upper, lower}, {above, all - above}, Qt::Vertical);
    else
        resizeDocks({upper, strip, lower}, {above, low, all - above - low}, Qt::Vertical);
}

// Twice: until they are shown docks ask for more room than they need, and the window grows by it.
void MainWindow::placeDocks() {
    const QByteArray kept = std::exchange(keptState_, {});
    if (arranged_ && kept.isEmpty()) return;
    const auto place = [this, kept] {
        if (kept.isEmpty() || !restoreState(kept, WindowMemory::kLayout)) return arrange();
        placeRunStrip();
        placeLiveDock();
        showDocks();  // which docks show depends on the document alone
    };
    const QSize wanted = size();
    place();
    arranged_ = !kept.isEmpty() || workspace_.document()->plannable;
    const auto again = [this, place, wanted] {
        if (!workspace_.document() || maximised_) return;
        if (!isMaximized() && !isFullScreen()) resize(wanted);
        place();
    };
    QMetaObject::invokeMethod(this, again, Qt::QueuedConnection);
}

void MainWindow::showDocks() {
    const DocumentPointer& document = workspace_.document();
    for (QDockWidget* each : docks_)
        each->setVisible(document && panelOf(each).applies() &&
                         (!maximised_ || each == maximised_));
}

QDockWidget* MainWindow::viewWithKeys() const {
    QDockWidget* view = firstDock(PanelArea::Upper);
    for (QDockWidget* each : docks_)
        if (each->isVisible() && each->underMouse()) view = each;
    const QWidget* focus = QApplication::focusWidget();
    for (QDockWidget* each : docks_)
        if (focus && (each->isAncestorOf(focus) || each->titleBarWidget()->isAncestorOf(focus)))
            view = each;
    return view;
}

// A view behind another's tab counts as visible: Tab would go through all that is hidden.
bool MainWindow::focusNextPrevChild(bool next) {
    QWidget* from = focusWidget() ? focusWidget() : this;
    for (QWidget* at = from;;) {
        at = next ? at->nextInFocusChain() : at->previousInFocusChain();
        if (at == from) return false;
        if ((at->focusPolicy() & Qt::TabFocus) != Qt::TabFocus || at->focusProxy() ||
            !at->isEnabled() || at->window() != this || at->visibleRegion().isEmpty())
            continue;
        at->setFocus(next ? Qt::TabFocusReason : Qt::BacktabFocusReason);
        return true;
    }
}

void MainWindow::toggleMaximised(QDockWidget* view) {
    if (!workspace_.document()) return;
    if (maximised_) {
        view = std::exchange(maximised_, nullptr);
        showDocks();  // Qt restores the sizes of those that are shown
        restoreState(std::exchange(stateBeforeMaximum_, {}), WindowMemory::kLayout);
        placeRunStrip();
        placeLiveDock();
        showDocks();
    } else {
        stateBeforeMaximum_ = saveState(WindowMemory::kLayout);
        maximised_ = view;
        showDocks();
        liveDock_->hide();
    }
    view->raise();
    view->widget()->setFocus();
}

// A double click on the line above a view, which would detach it from the window.
bool MainWindow::eventFilter(QObject* watched, QEvent* event) {
    auto* view = qobject_cast<QDockWidget*>(watched);
    if (!view || event->type() != QEvent::MouseButtonDblClick ||
        !view->titleBarWidget()->geometry().contains(
            static_cast<QMouseEvent*>(event)->position().toPoint()))
        return QMainWindow::eventFilter(watched, event);
    toggleMaximised(view);
    return true;
}

void MainWindow::useMemory(WindowMemory memory) {
    memory_.emplace(std::move(memory));
    memory_->restoreGeometry(*this);
    keptState_ = memory_->docks(*this);
    setFontScale(memory_->fontScale());
    setLight(memory_->light());
    fillRecent();
}

void MainWindow::closeEvent(QCloseEvent* event) {
    if (maximised_) toggleMaximised(maximised_);
    if (memory_) {
        if (workspace_.document())  // with all docks in their places
            memory_->keep(*this, saveState(WindowMemory::kLayout));
        memory_->keepLook(theme().light, fontScale());
    }
    QMainWindow::closeEvent(event);
}

void MainWindow::resetLayout() {
    arranged_ = false;
    maximised_ = nullptr;
    keptState_.clear();
    if (memory_) memory_->forgetLayout();
    restoreState(firstState_);
    placeRunStrip();
    documentArrived();
    if (workspace_.document()) placeDocks();
}

}  // namespace hw::viewer

// SPDX-License-Identifier: GPL-3.0-or-later
// What the window does with what is selected: find it, go there, copy what is known of it.
#include <QClipboard>
#include <QGuiApplication>
#include <algorithm>

#include "viewer/models/inspection.h"
#include "viewer/models/time_range.h"
#include "viewer/panels/main_window.h"
#include "viewer/panels/search_dialog.h"
#include "viewer/panels/table_view.h"
#include "viewer/panels/timeline_panel.h"

namespace hw::viewer {

// Of views and tables: what can be done with the selection, which a press has just made.
void MainWindow::buildContextMenus() {
    for (QDockWidget* each : docks_) {
        QWidget* panel = each->widget();
        panel->addActions(ofSelection_);
        panel->setContextMenuPolicy(Qt::ActionsContextMenu);
        for (TableView* table : panel->findChildren<TableView*>()) table->addActions(ofSelection_);
    }
}

QDockWidget* MainWindow::dockOf(const PanelKind& kind) const {
    return *std::find_if(docks_.begin(), docks_.end(),
                         [&](const QDockWidget* each) { return &panelOf(each).kind() == &kind; });
}

void MainWindow::goTo(QDockWidget* view) {
    if (maximised_ && maximised_ != view) toggleMaximised(maximised_);
    view->raise();
    view->widget()->setFocus();
}

void MainWindow::showSearch() {
    auto* search = new SearchDialog(workspace_, this);
    connect(search, &SearchDialog::found, this, [this] {
        dockOf(TimelinePanel::kKind)->raise();
        if (const auto extent = extentOf(*workspace_.document(), workspace_.selection().current()))
            zoomTo(withSurroundings(*workspace_.document(), *extent));
    });
    search->open();
}

void MainWindow::zoomTo(const std::optional<TimeRange>& extent) {
    if (extent)
        panel<TimelinePanel>().plot().showTime(
            {milliseconds(extent->begin), milliseconds(extent->end)});
}

void MainWindow::zoomToSelection() {
    const SelectionModel& selection = workspace_.selection();
    if (selection.range()) return zoomTo(selection.range());
    const Document& document = *workspace_.document();
    if (const auto extent = extentOf(document, selection.current()))
        zoomTo(withSurroundings(document, *extent));
}

void MainWindow::copyFacts() {
    const SelectionModel& selection = workspace_.selection();
    QGuiApplication::clipboard()->setText(
        factsAsText(inspect(*workspace_.document(), selection.current(),
                            workspace_.active().inspected(), selection.range())));
}

}  // namespace hw::viewer

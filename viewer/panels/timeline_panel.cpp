// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/panels/timeline_panel.h"

#include <QKeyEvent>
#include <QVBoxLayout>

#include "viewer/plots/theme.h"

namespace hw::viewer {

TimelinePanel::TimelinePanel(Workspace& workspace) : Panel(workspace, tr("Timeline")) {
    plot_ = new TimelinePlot;
    legend_ = new Legend;
    addToHeader(legend_);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->addWidget(plot_);
    setFocusProxy(plot_);
    connect(&workspace, &Workspace::documentChanged, this, &TimelinePanel::reload);
    connect(&workspace, &Workspace::activePlanChanged, this, &TimelinePanel::updatePlan);
    connect(&workspace, &Workspace::budgetChanged, this, &TimelinePanel::updatePlan);
    connect(&workspace, &Workspace::selectionChanged, this,
            [this] { plot_->setSelection(this->workspace().selection()); });
    connect(&workspace, &Workspace::rangeChanged, this,
            [this] { plot_->setRange(this->workspace().range()); });
    connect(plot_, &TimelinePlot::rangePicked, &workspace, &Workspace::selectRange);
    connect(plot_, &TimelinePlot::opClicked, &workspace, &Workspace::selectOp);
    reload();
}

void TimelinePanel::reload() {
    plot_->setDocument(workspace().document());
    updatePlan();
}

void TimelinePanel::updatePlan() {
    const PlanPointer& plan = workspace().activePlan();
    // The baseline's own curve over itself says nothing.
    const bool shown = isPlanned(plan);
    plot_->setPlan(shown ? plan : nullptr);
    if (workspace().document() && budgetShown_)
        plot_->setBudget(workspace().budget());
    else
        plot_->setBudget(std::nullopt);
    updateLegend();
}

void TimelinePanel::updateLegend() {
    legend_->setItems(
        timelineLegend(*plot_, workspace().activePlan(), workspace().document().get()));
}

std::vector<Legend::Item> timelineLegend(const TimelinePlot& plot, const PlanPointer& plan,
                                         const Document* document) {
    std::vector<Legend::Item> items;
    for (const core::Category category : plot.categories())
        items.push_back({theme().category(category), categoryText(category)});
    if (isPlanned(plan) && document)
        items.push_back(
            {theme().planLine(),
             TimelinePanel::tr("plan: %1 at %2")
                 .arg(plan->planner, percentText(ratio(plan->budget, document->peak()))),
             true});
    return items;
}

void TimelinePanel::applyTheme() {
    plot_->applyTheme();
    updateLegend();
}

core::Status TimelinePanel::prepareShot(const std::vector<std::string>& planFiles) {
    budgetShown_ = !planFiles.empty();
    updatePlan();
    return {};
}

void TimelinePanel::keyPressEvent(QKeyEvent* event) {
    switch (event->key()) {
        case Qt::Key_PageUp:
            plot_->pan(-0.5);
            break;
        case Qt::Key_PageDown:
            plot_->pan(0.5);
            break;
        default:
            Panel::keyPressEvent(event);
    }
}

}  // namespace hw::viewer

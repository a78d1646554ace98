// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/panels/trace_panel.h"

#include <QVBoxLayout>
#include <algorithm>

#include "viewer/plots/theme.h"

namespace hw::viewer {

const PanelKind TracePanel::kKind{.name = "trace",
                                  .title = "Memory trace",
                                  .help =
                                      "<p>Each storage as a line over the time of the plan: where "
                                      "it is kept, encoded, or recomputed.</p>",
                                  .area = PanelArea::Upper,
                                  .make = makePanel<TracePanel>,
                                  .needsStep = true,
                                  .axes = {.steps = true, .bytes = true}};

TracePanel::TracePanel(Workspace& workspace) : Panel(workspace, kKind) {
    plot_ = new TracePlot;
    legend_ = new Legend;
    addToHeader(legend_);
    steps_ = toggle(tr("steps"), tr("Across: steps of the schedule instead of time"));
    bytes_ = toggle(tr("bytes"), tr("Up: every storage as high as it is large"));
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->addWidget(plot_, 1);
    empty_ = makeNote();
    empty_->setText(noStep());
    column->addWidget(empty_, 1);
    empty_->hide();
    setFocusProxy(plot_);
    connect(&workspace, &Workspace::documentChanged, this, &TracePanel::updatePlan);
    connect(&workspace.active(), &ActivePlan::planChanged, this, &TracePanel::updatePlan);
    connect(&workspace.selection(), &SelectionModel::selectionChanged, this,
            [this] { plot_->setSelectedOp(this->workspace().selection().op()); });
    connect(plot_, &TracePlot::opClicked, &workspace.selection(), &SelectionModel::selectOp);
    updateLegend();
}

QToolButton* TracePanel::toggle(const QString& text, const QString& tip) {
    auto* button = new QToolButton;
    button->setText(text);
    button->setToolTip(tip);
    button->setCheckable(true);
    addToHeader(button);
    connect(button, &QToolButton::toggled, this, [this] {
        plot_->setAxes({steps_->isChecked(), bytes_->isChecked()});
    });
    return button;
}

void TracePanel::updatePlan() {
    stale_ = true;
    if (!isVisible()) return;
    stale_ = false;
    plot_->show(workspace().document(), workspace().active().plan());
    updateLegend();
}

void TracePanel::showEvent(QShowEvent* event) {
    Panel::showEvent(event);
    if (stale_) updatePlan();
}

void TracePanel::updateLegend() {
    const DocumentPointer& document = workspace().document();
    const bool step = !document || document->plannable;
    plot_->setVisible(step);
    empty_->setVisible(!step);
    if (!step) return legend_->setItems({});
    const std::vector<TraceBar>& bars = plot_->trace().bars;
    std::vector<Legend::Item> items;
    for (const core::ActionTraits& traits : core::kActions) {
        const auto kind = static_cast<core::ActionKind>(&traits - core::kActions);
        const bool shown = kind == core::ActionKind::Compute ||
                           std::any_of(bars.begin(), bars.end(),
                                       [&](const TraceBar& bar) { return bar.by == kind; });
        if (shown && traits.leaves) items.push_back({theme().lifetime(kind), tr(traits.leaves)});
    }
    items.push_back({theme().muted, tr("blank: not in memory"), false, true});
    legend_->setItems(std::move(items));
}

void TracePanel::applyTheme() {
    plot_->applyTheme();
    updateLegend();
}

void TracePanel::setAxes(TraceAxes axes) {
    steps_->setChecked(axes.steps);
    bytes_->setChecked(axes.bytes);
}

core::Status TracePanel::prepareShot(const std::vector<std::string>&) {
    stale_ = false;
    plot_->show(workspace().document(), workspace().active().plan());
    updateLegend();
    return {};
}

}  // namespace hw::viewer

// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/panels/timeline_panel.h"

#include <QKeyEvent>
#include <QVBoxLayout>

#include "viewer/plots/timeline_legend.h"

namespace hw::viewer {

const PanelKind TimelinePanel::kKind{
    .name = "timeline",
    .title = "Timeline",
    .help =
        "<p>Live memory over the step, stacked by category, or by the line that asked for it where "
        "a trace tells no categories: the filled curve is what was recorded, the line over it what "
        "the plan does, and the thin one, while a program trains under the "
        "plan, what it holds right now. Phases, layers and ops lie below on the same axis. "
        "No zoom hides a peak.</p><p><b>W S</b> or the wheel zoom, <b>A D</b> or dragging moves, "
        "<b>0</b> shows the whole step, <b>F</b> what is selected. A click chooses the op, "
        "<b>Shift</b> and a drag a stretch of time, and measures what comes and goes in it.</p>",
    .area = PanelArea::Upper,
    .make = makePanel<TimelinePanel>,
    .tourTitle = "What is live, when",
    .tourText =
        "The memory of one training step. The red mark is the peak: it decides whether the model "
        "fits. Move the pointer over it to see who holds what."};

TimelinePanel::TimelinePanel(Workspace& workspace) : Panel(workspace, kKind) {
    plot_ = new TimelinePlot;
    legend_ = new Legend;
    devices_ = new QComboBox;
    devices_->setAccessibleName(tr("whose memory"));
    devices_->hide();
    addToHeader(devices_);
    addToHeader(legend_);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->addWidget(plot_);
    setFocusProxy(plot_);
    connect(&workspace, &Workspace::documentChanged, this, &TimelinePanel::reload);
    connect(&workspace.active(), &ActivePlan::planChanged, this, &TimelinePanel::updatePlan);
    connect(&workspace, &Workspace::budgetChanged, this, &TimelinePanel::updatePlan);
    connect(&workspace.loader(), &DocumentLoader::otherChanged, this, [this] {
        plot_->setOther(this->workspace().loader().other());
        updateLegend();
    });
    connect(&workspace, &Workspace::liveChanged, this, &TimelinePanel::updateLive);
    connect(&workspace.selection(), &SelectionModel::selectionChanged, this,
            [this] { plot_->setSelection(this->workspace().selection().current()); });
    connect(&workspace.selection(), &SelectionModel::rangeChanged, this,
            [this] { plot_->setRange(this->workspace().selection().range()); });
    connect(devices_, &QComboBox::activated, this, [this] {
        this->workspace().openDevice(devices_->currentData().toString().toStdString());
    });
    connect(plot_, &TimelinePlot::rangePicked, &workspace.selection(),
            &SelectionModel::selectRange);
    connect(plot_, &TimelinePlot::opClicked, &workspace.selection(), &SelectionModel::selectOp);
    reload();
}

// A trace of several devices shows one at a time.
void TimelinePanel::listDevices() {
    const DocumentPointer& document = workspace().document();
    devices_->clear();
    devices_->setVisible(document && document->devices.size() > 1);
    if (!document) return;
    for (const core::RecordedDevice& device : document->devices) {
        const core::Bytes peak = device.peak;
        devices_->addItem(
            tr("%1: peak %2").arg(toQString(titleOf(device)), SizeUnit::fitting(peak).text(peak)),
            toQString(device.label));
        if (device.ordinal == document->ordinal) devices_->setCurrentIndex(devices_->count() - 1);
    }
}

void TimelinePanel::reload() {
    listDevices();
    plot_->setDocument(workspace().document());
    plot_->setLive(workspace().live());
    plot_->setOther(workspace().loader().other());
    updatePlan();
}

void TimelinePanel::updatePlan() {
    const PlanPointer& plan = workspace().active().plan();
    // The baseline's own curve over itself says nothing.
    const bool shown = isPlanned(plan);
    plot_->setPlan(shown ? plan : nullptr);
    if (workspace().document() && budgetShown_)
        plot_->setBudget(workspace().budget());
    else
        plot_->setBudget(std::nullopt);
    updateLegend();
}

void TimelinePanel::updateLive() {
    plot_->setLive(workspace().live());
    updateLegend();
}

void TimelinePanel::updateLegend() {
    legend_->setItems(
        timelineLegend(*plot_, workspace().active().plan(), workspace().document().get()));
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

// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/panels/map_panel.h"

#include <QVBoxLayout>
#include "viewer/plots/map_legend.h"

namespace hw::viewer {

const PanelKind MapPanel::kKind{
    .name = "map",
    .title = "Address map",
    .help =
        "<p>Tensors as rectangles over time and address; blank is free memory. With a plan it is "
        "the packed arena that a run allocates once, without one the addresses as "
        "recorded.</p><p>A "
        "click on a block selects its tensor.</p>",
    .area = PanelArea::Upper,
    .make = makePanel<MapPanel>,
    .axes = {.steps = true}};

MapPanel::MapPanel(Workspace& workspace) : Panel(workspace, kKind) {
    plot_ = new MapPlot;
    legend_ = new Legend;
    addToHeader(legend_);
    const auto toggle = [this](const QString& text, const QString& tip) {
        auto* button = new QToolButton;
        button->setText(text);
        button->setToolTip(tip);
        button->setCheckable(true);
        addToHeader(button);
        return button;
    };
    recorded_ = toggle(tr("recorded"), tr("Addresses as they were recorded, not a packed arena"));
    steps_ = toggle(tr("steps"), tr("Across: steps of the schedule instead of time"));
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->addWidget(plot_);
    setFocusProxy(plot_);
    connect(recorded_, &QToolButton::toggled, this, &MapPanel::reload);
    connect(steps_, &QToolButton::toggled, plot_, &MapPlot::setBySteps);
    connect(&workspace, &Workspace::documentChanged, this, &MapPanel::reload);
    connect(&workspace.active(), &ActivePlan::planChanged, this, &MapPanel::reload);
    connect(&workspace.selection(), &SelectionModel::selectionChanged, this,
            [this] { plot_->setSelection(this->workspace().selection().current()); });
    connect(plot_, &MapPlot::storagePicked, &workspace.selection(), &SelectionModel::selectStorage);
    connect(plot_, &MapPlot::opPicked, &workspace.selection(), &SelectionModel::selectOp);
    connect(plot_, &MapPlot::blockPicked, &workspace.selection(), &SelectionModel::selectBlock);
}

MapPanel::Request MapPanel::request() const {
    Request made{workspace().document(), workspace().active().plan(), recorded_->isChecked()};
    if (!isPlanned(made.plan)) made.plan = nullptr;
    if (made.document && !made.document->plannable) made.recorded = true;
    if (made.recorded) made.plan = nullptr;
    return made;
}

std::shared_ptr<const AddressMap> MapPanel::make(const Request& request,
                                                 const std::function<bool()>& cancelled) {
    const Document& document = *request.document;
    if (request.recorded) return std::make_shared<const AddressMap>(recordedMap(document));
    return std::make_shared<const AddressMap>(packedMap(document, request.plan.get(), cancelled));
}

void MapPanel::reload() {
    stale_ = true;
    queue_.cancelAll();
    if (!isVisible()) return;
    stale_ = false;
    const Request wanted = request();
    if (!wanted.document || wanted.document->curve.moments.empty()) return plot_->setNote({});
    plot_->setNote(wanted.recorded ? tr("reading the recorded addresses…")
                                   : tr("packing the arena…"));
    queue_.submit([this, wanted](const TaskQueue::Cancelled& cancelled) -> TaskQueue::Delivery {
        auto map = make(wanted, cancelled);
        return [this, wanted, map] { take(wanted, map); };
    });
}

void MapPanel::take(const Request& request, std::shared_ptr<const AddressMap> map) {
    plot_->show(request.document, request.plan, map);
    plot_->setSelection(workspace().selection().current());
    if (map->blocks.empty())
        plot_->setNote(tr("No address map: %1.\nRecord the process with `highwater record`, or "
                          "import a snapshot of its allocator.")
                           .arg(map->why.isEmpty() ? tr("there are no blocks") : map->why));
    recorded_->setVisible(request.document->plannable);
    updateLegend();
}

void MapPanel::showEvent(QShowEvent* event) {
    Panel::showEvent(event);
    if (stale_) reload();
}

void MapPanel::updateLegend() {
    const AddressMap* map = plot_->map();
    legend_->setItems(map ? mapLegend(*map, *workspace().document()) : std::vector<Legend::Item>());
}

void MapPanel::applyTheme() {
    plot_->applyTheme();
    updateLegend();
}

void MapPanel::setAxes(TraceAxes axes) {
    steps_->setChecked(axes.steps);
}

core::Status MapPanel::prepareShot(const std::vector<std::string>& planFiles) {
    stale_ = false;
    Request wanted = request();
    if (!wanted.document) return {};
    auto map = make(wanted, {});
    if (planFiles.empty() && wanted.document->plannable) {
        // Without a plan a picture shows what was recorded, where it was.
        const Request recorded{wanted.document, nullptr, true};
        if (auto found = make(recorded, {}); !found->blocks.empty()) map = found, wanted = recorded;
    }
    take(wanted, map);
    return {};
}

}  // namespace hw::viewer

// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/panels/map_panel.h"

#include <QVBoxLayout>
#include <algorithm>
#include <array>

#include "core/import/import.h"
#include "core/session/load_menu.h"
#include "viewer/plots/theme.h"

namespace hw::viewer {

namespace {

// Kinds of ops, where blocks have their colours.
std::vector<Legend::Item> families() {
    return {{theme().family(OpFamily::Matrix), MapPanel::tr("made by matrix ops")},
            {theme().family(OpFamily::Normalization), MapPanel::tr("normalization")},
            {theme().family(OpFamily::Elementwise), MapPanel::tr("element-wise")},
            {theme().family(OpFamily::Reduction), MapPanel::tr("reduction")},
            {theme().family(OpFamily::Movement), MapPanel::tr("movement")},
            {theme().family(OpFamily::Other), MapPanel::tr("others")}};
}

}  // namespace

const PanelKind MapPanel::kKind{
    .name = "map",
    .title = "Address map",
    .help =
        "<p>Tensors as rectangles over time and address; blank is free memory. With a plan it is "
        "the packed arena that a run allocates once, without one the addresses as recorded.</p>",
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
    connect(&workspace, &Workspace::activePlanChanged, this, &MapPanel::reload);
    connect(&workspace, &Workspace::selectionChanged, this,
            [this] { plot_->setSelection(this->workspace().selection()); });
    connect(plot_, &MapPlot::storagePicked, &workspace, &Workspace::selectStorage);
    connect(plot_, &MapPlot::opPicked, &workspace, &Workspace::selectOp);
}

MapPanel::Request MapPanel::request() const {
    Request made{workspace().document(), workspace().activePlan(), recorded_->isChecked()};
    if (!isPlanned(made.plan)) made.plan = nullptr;
    if (made.document && !made.document->plannable) made.recorded = true;
    if (made.recorded) made.plan = nullptr;
    return made;
}

std::shared_ptr<const AddressMap> MapPanel::make(const Request& request,
                                                 const std::function<bool()>& cancelled) {
    const Document& document = *request.document;
    if (request.recorded) return std::make_shared<const AddressMap>(recordedMap(document));
    // With the allocations that a profile run saw, as `highwater layout` has them.
    core::Signatures signatures;
    if (document.graph.costs == core::CostSet::Measured)
        if (auto session = core::openAny(document.path))
            if (auto found = core::loadSignaturesUnder(
                    *session, document.graph, request.plan ? request.plan->chosen : core::Menu()))
                signatures = std::move(*found);
    if (!request.plan)
        return std::make_shared<const AddressMap>(
            packedMap(document.graph, document.baseline, signatures, cancelled));
    AddressMap map =
        packedMap(document.graphOf(*request.plan), request.plan->schedule, signatures, cancelled);
    // What only the plan's implementations make has no storage in the recorded step.
    for (MapBlock& block : map.blocks)
        if (block.storage >= static_cast<core::StorageIndex>(document.graph.storages.size()))
            block.storage = core::kNone;
    return std::make_shared<const AddressMap>(std::move(map));
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
    plot_->setSelection(workspace().selection());
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
    std::vector<Legend::Item> items;
    const AddressMap* map = plot_->map();
    std::array<bool, core::kCategoryCount> seen{};
    if (map)
        for (const MapBlock& block : map->blocks)
            seen[static_cast<std::size_t>(block.category)] = true;
    for (int c = 0; c < core::kCategoryCount; ++c) {
        const auto category = static_cast<core::Category>(c);
        if (!seen[static_cast<std::size_t>(c)]) continue;
        if (category == core::Category::Unknown && map->recorded &&
            !workspace().document()->plannable)
            continue;  // coloured by the op, or to tell neighbours apart
        items.push_back({theme().category(category), categoryText(category)});
    }
    if (map && map->recorded && !workspace().document()->plannable) {
        if (workspace().document()->graph.ops.empty())
            items.push_back({theme().category(core::Category::Parameter), tr("a shade a size")});
        else
            items = families();
    }
    if (map) items.push_back({theme().muted, tr("blank: free"), false, true});
    legend_->setItems(std::move(items));
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

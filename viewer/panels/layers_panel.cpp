// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/panels/layers_panel.h"

#include <QHeaderView>
#include <QVBoxLayout>
#include <algorithm>

#include "viewer/panels/share_bar.h"

namespace hw::viewer {
namespace {

constexpr int kNarrow = 620;  // pixels below which only the first figures are shown
constexpr int kSlim = 240, kIndent = 14, kSlimIndent = 8;
constexpr int kRowsOpen = 34;

}  // namespace

const PanelKind LayersPanel::kKind{
    .name = "layers",
    .title = "Layers",
    .help =
        "<p>The layers with what they save for backward, their times and their share of the peak; "
        "columns that the recording says nothing about are left out.</p><p>A click on a layer "
        "draws what it holds in the timeline.</p>",
    .area = PanelArea::Side,
    .make = makePanel<LayersPanel>,
    .tourTitle = "Who holds it",
    .tourText = "The layers, the largest at the peak first. Choose one to see it in every view."};

LayersPanel::LayersPanel(Workspace& workspace) : Panel(workspace, kKind) {
    model_ = new LayerModel(this);
    table_ = new TableView(model_);
    table_->setRootIsDecorated(true);
    table_->setIndentation(kIndent);
    table_->setItemDelegateForColumn(LayerModel::Share,
                                     new ShareBar(LayerModel::kShareRole, table_));
    table_->setLeading(LayerModel::Share, ShareBar::kWidth);
    table_->setTextElideMode(Qt::ElideMiddle);
    addToHeader(table_->filterBox());
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->addWidget(table_, 1);
    empty_ = makeNote();
    empty_->setText(
        tr("No layers were recorded, so there is nothing to break the memory down by.\n"
           "Record with `highwater record`, which follows the modules of the model."));
    column->addWidget(empty_, 1);
    setFocusProxy(table_);
    setMinimumWidth(140);
    connect(&workspace, &Workspace::documentChanged, this, &LayersPanel::reload);
    connect(&workspace.loader(), &DocumentLoader::otherChanged, this, &LayersPanel::reload);
    connect(&workspace.selection(), &SelectionModel::selectionChanged, this, [this] {
        table_->mark(model_->indexOf(this->workspace().selection().current().layer));
    });
    connect(table_, &TableView::picked, this, [this](const QModelIndex& index) {
        if (model_->layer(index) != core::kNone)
            this->workspace().selection().selectLayer(model_->layer(index));
        else if (model_->firstOp(index) != core::kNone)
            this->workspace().selection().selectOp(model_->firstOp(index));
    });
    reload();
}

void LayersPanel::reload() {
    const DocumentPointer& document = workspace().document();
    model_->setDocument(document, workspace().loader().other());
    const bool none = document && document->graph.layers.empty();
    table_->setVisible(!none);
    empty_->setVisible(none);
    chooseColumns();
    openWhatFits(kRowsOpen);
}

void LayersPanel::openWhatFits(int rows) {
    table_->collapseAll();
    std::vector<QModelIndex> level;
    for (int row = 0; row < model_->rowCount(); ++row) level.push_back(model_->index(row, 0));
    auto shown = static_cast<int>(level.size());
    while (!level.empty()) {
        std::vector<QModelIndex> parts;
        for (const QModelIndex& each : level)
            for (int row = 0; row < model_->rowCount(each); ++row)
                parts.push_back(model_->index(row, 0, each));
        if (shown + static_cast<int>(parts.size()) > rows) return;
        for (const QModelIndex& each : level) table_->expand(table_->shown().mapFromSource(each));
        shown += static_cast<int>(parts.size());
        level = std::move(parts);
    }
}

void LayersPanel::chooseColumns() {
    const bool wide = width() >= kNarrow;
    table_->setIndentation(width() < kSlim ? kSlimIndent : kIndent);  // the names need the room
    const LayerTree& tree = model_->tree();
    const bool types = std::any_of(tree.shares.begin(), tree.shares.end(), [&](const auto& share) {
        return share.layer != core::kNone &&
               !workspace().document()->graph.layers[share.layer].type.empty();
    });
    table_->setColumnHidden(LayerModel::Type, !wide || !types);
    table_->setColumnHidden(LayerModel::AtPeak, !tree.peaks);
    table_->setColumnHidden(LayerModel::Share, !tree.peaks || !wide);
    table_->setColumnHidden(LayerModel::Saved, !wide || !tree.phases || !tree.peaks);
    table_->setColumnHidden(LayerModel::Forward, !wide || !tree.phases);
    table_->setColumnHidden(LayerModel::Backward, !wide || !tree.phases);
    table_->setColumnHidden(LayerModel::Ops, !wide);
    // Where not all fit, the time gives way to the names.
    QList<int> dispensable;
    if (tree.peaks) dispensable << LayerModel::Time;
    if (model_->columnCount() > LayerModel::Other) dispensable << LayerModel::Other;
    table_->setDispensable(dispensable);
    if (!tree.peaks) table_->setColumnHidden(LayerModel::Time, false);
    table_->fitColumns();
}

void LayersPanel::resizeEvent(QResizeEvent* event) {
    Panel::resizeEvent(event);
    chooseColumns();
}

bool LayersPanel::applies() const {
    return !workspace().document()->graph.layers.empty();
}

int LayersPanel::naturalHeight() const {
    int rows = 0;
    for (QModelIndex row = table_->shown().index(0, 0); row.isValid();
         row = table_->indexBelow(row))
        ++rows;
    return empty_->isHidden() ? std::clamp(50 + rows * table_->rowHeightHint(), 300, 1100) : 240;
}

}  // namespace hw::viewer

// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/panels/flame_panel.h"

#include <QVBoxLayout>
#include <algorithm>
#include <array>

#include "viewer/models/live_set.h"
#include "viewer/plots/theme.h"

namespace hw::viewer {
namespace {

enum Bytes { AtPeak, Saved };

core::Origin originOf(const Document& document, const LiveItem& item) {
    const core::TrainingGraph& graph = document.graph;
    const std::int64_t stack =
        item.storage != core::kNone
            ? document.stacks.ofStorage(graph.storages[item.storage].sessionId)
        : item.op != core::kNone ? document.stacks.ofOp(graph.ops[item.op].sessionId)
                                 : core::CallStacks::kNone;
    return {item.bytes, item.storage, item.op, item.layer, stack};
}

}  // namespace

const PanelKind FlamePanel::kKind{
    .name = "flame",
    .title = "Flame graph",
    .help =
        "<p>Which code made the memory: a row is a frame of the call stack below what called it, "
        "as wide as its bytes; the lowest row is the op. Shown are the bytes live at the peak or "
        "those saved for the backward, by call stack or by layer.</p><p>A click or Enter zooms, a "
        "click above or Escape goes back, the arrow keys go from part to part.</p>",
    .area = PanelArea::Upper,
    .make = makePanel<FlamePanel>};

FlamePanel::FlamePanel(Workspace& workspace) : Panel(workspace, kKind) {
    view_ = new FlameView;
    scroll_ = new QScrollArea;
    scroll_->setWidget(view_);
    scroll_->setWidgetResizable(true);
    scroll_->setFrameShape(QFrame::NoFrame);
    scroll_->setFocusPolicy(Qt::NoFocus);
    bytes_ = new QComboBox;
    bytes_->addItems({tr("at the peak"), tr("saved for backward")});
    bytes_->setAccessibleName(tr("which bytes"));
    tree_ = new QComboBox;
    tree_->addItem(tr("by call stack"), static_cast<int>(core::OriginTree::Program));
    tree_->addItem(tr("with torch's frames"), static_cast<int>(core::OriginTree::Stack));
    tree_->addItem(tr("by layer"), static_cast<int>(core::OriginTree::Layer));
    tree_->setAccessibleName(tr("by what"));
    search_ = new QLineEdit;
    search_->setPlaceholderText(tr("search"));
    search_->setClearButtonEnabled(true);
    search_->setFixedWidth(150);
    search_->setAccessibleName(tr("search in the flame graph"));
    legend_ = new Legend;
    for (QWidget* widget : std::initializer_list<QWidget*>{legend_, bytes_, tree_, search_})
        addToHeader(widget);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->addWidget(scroll_);
    setFocusProxy(view_);
    connect(bytes_, &QComboBox::currentIndexChanged, this, &FlamePanel::reload);
    connect(tree_, &QComboBox::currentIndexChanged, this, &FlamePanel::reload);
    connect(search_, &QLineEdit::textChanged, view_, &FlameView::setSearch);
    connect(view_, &FlameView::storagePicked, &workspace, &Workspace::selectStorage);
    connect(view_, &FlameView::chosen, this, [this](const QRect& box) {
        scroll_->ensureVisible(scroll_->horizontalScrollBar()->value() + 1, box.center().y());
    });
    connect(&workspace, &Workspace::documentChanged, this, [this] {
        const DocumentPointer& document = this->workspace().document();
        const bool layers = document && document->stacks.empty();
        tree_->setCurrentIndex(layers ? 2 : 0);
        reload();
    });
}

void FlamePanel::reload() {
    stale_ = true;
    if (isVisible()) showTree();
}

void FlamePanel::showEvent(QShowEvent* event) {
    Panel::showEvent(event);
    if (stale_) showTree();
}

std::vector<core::Origin> FlamePanel::origins(const Document& document) const {
    if (bytes_->currentIndex() == Saved) return originsSaved(document.graph, document.stacks);
    std::vector<core::Origin> all;
    if (document.curve.moments.empty()) return all;
    for (const LiveItem& item :
         liveAt(document.graph, document.curve, document.curve.peakMoment).items)
        all.push_back(originOf(document, item));
    return all;
}

void FlamePanel::showTree() {
    stale_ = false;
    const DocumentPointer& document = workspace().document();
    if (!document) return view_->clear();
    const auto by = static_cast<core::OriginTree>(tree_->currentData().toInt());
    const std::vector<core::Origin> all = origins(*document);
    view_->show(document, originTree(by, document->graph, document->stacks, all),
                bytes_->currentIndex() == Saved ? tr("saved for backward") : tr("recorded peak"));
    updateLegend(*document, all);
}

void FlamePanel::updateLegend(const Document& document, const std::vector<core::Origin>& all) {
    std::array<bool, core::kCategoryCount> seen{};
    for (const core::Origin& origin : all)
        if (origin.storage != core::kNone)
            seen[static_cast<std::size_t>(document.graph.storages[origin.storage].category)] = true;
    std::vector<Legend::Item> items;
    for (int c = 0; c < core::kCategoryCount; ++c) {
        const auto category = static_cast<core::Category>(c);
        if (seen[static_cast<std::size_t>(c)])
            items.push_back({theme().category(category), categoryText(category)});
    }
    legend_->setItems(std::move(items));
}

void FlamePanel::applyTheme() {
    view_->update();
    reload();
}

core::Status FlamePanel::prepareShot(const std::vector<std::string>&) {
    showTree();
    return {};
}

}  // namespace hw::viewer

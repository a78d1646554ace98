// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/panels/flame_panel.h"

#include <QVBoxLayout>
#include <algorithm>
#include <memory>
#include <utility>

#include "viewer/models/live_set.h"
#include "viewer/plots/colours.h"
#include "viewer/plots/theme.h"

namespace hw::viewer {
namespace {

enum Bytes { AtPeak, Saved };

core::Origin originOf(const Document& document, const LiveItem& item) {
    const std::int64_t stack =
        item.storage != core::kNone ? document.stackOf(item.storage) : document.stackOfOp(item.op);
    return {item.bytes, item.storage, item.op, item.layer, stack};
}

std::vector<core::Origin> originsOf(const Document& document, int bytes) {
    if (bytes == Saved) return originsSaved(document.graph, document.stacks);
    std::vector<core::Origin> all;
    if (document.curve.moments.empty()) return all;
    for (const LiveItem& item : liveAt(document, document.curve, document.curve.peakMoment).items)
        all.push_back(originOf(document, item));
    return all;
}

}  // namespace

const PanelKind FlamePanel::kKind{
    .name = "flame",
    .title = "Flame graph",
    .help =
        "<p>Which code made the memory: a row is a frame of the call stack below what called it, "
        "as wide as its bytes; the lowest row is the op. Shown are the bytes live at the peak or "
        "those saved for the backward, by call stack or by layer. With another session beside "
        "(<tt>--with</tt>) it shows what is more and what is less there.</p><p>A click or Enter "
        "zooms, a "
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
    beside_ = new QComboBox;
    beside_->addItems({tr("difference"), tr("this session")});
    beside_->setAccessibleName(tr("this session or the difference to the other"));
    beside_->hide();
    search_ = new QLineEdit;
    search_->setPlaceholderText(tr("search"));
    search_->setClearButtonEnabled(true);
    search_->setFixedWidth(150);
    search_->setAccessibleName(tr("search in the flame graph"));
    legend_ = new Legend;
    for (QWidget* widget :
         std::initializer_list<QWidget*>{legend_, beside_, bytes_, tree_, search_})
        addToHeader(widget);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->addWidget(scroll_);
    setFocusProxy(view_);
    connect(bytes_, &QComboBox::currentIndexChanged, this, &FlamePanel::reload);
    connect(tree_, &QComboBox::currentIndexChanged, this, &FlamePanel::reload);
    connect(beside_, &QComboBox::currentIndexChanged, this, &FlamePanel::reload);
    connect(search_, &QLineEdit::textChanged, view_, &FlameView::setSearch);
    connect(view_, &FlameView::storagePicked, &workspace.selection(),
            &SelectionModel::selectStorage);
    connect(view_, &FlameView::chosen, this, [this](const QRect& box) {
        scroll_->ensureVisible(scroll_->horizontalScrollBar()->value() + 1, box.center().y());
    });
    connect(&workspace.loader(), &DocumentLoader::otherChanged, this, &FlamePanel::otherArrived);
    connect(&workspace, &Workspace::documentChanged, this, [this] {
        chooseTree();
        reload();
    });
}

void FlamePanel::otherArrived() {
    beside_->setVisible(workspace().loader().other() != nullptr);
    chooseTree();
    reload();
}

void FlamePanel::chooseTree() {
    const auto unlined = [](const DocumentPointer& document) {
        return document && document->stacks.empty();
    };
    const bool layers = unlined(workspace().document()) || unlined(workspace().loader().other());
    tree_->setCurrentIndex(layers ? 2 : 0);
}

FlamePanel::Request FlamePanel::request() const {
    const bool both = beside_->currentIndex() == 0;
    return {workspace().document(), both ? workspace().loader().other() : nullptr,
            bytes_->currentIndex(), static_cast<core::OriginTree>(tree_->currentData().toInt())};
}

core::OriginNode FlamePanel::treeOf(const Document& document, const Request& request) {
    return originTree(request.by, document.graph, document.stacks,
                      originsOf(document, request.bytes));
}

// Seconds for millions of storages, so the window does not wait for it.
FlamePanel::Made FlamePanel::make(const Request& request) {
    const Document& document = *request.document;
    const std::vector<core::Origin> all = originsOf(document, request.bytes);
    Made made{originTree(request.by, document.graph, document.stacks, all), {}};
    for (const core::Origin& origin : all)
        if (origin.storage != core::kNone) made.bands.set(document.bandOf(origin.storage));
    if (request.other)
        made.root = besideOther(std::move(made.root), treeOf(*request.other, request));
    return made;
}

void FlamePanel::reload() {
    stale_ = true;
    queue_.cancelAll();
    if (!isVisible()) return;
    stale_ = false;
    const Request wanted = request();
    if (!wanted.document) return view_->clear();
    if (!wanted.document->hasMemory()) return view_->clear(wanted.document->whyNoMemory());
    queue_.submit([this, wanted](const TaskQueue::Cancelled&) -> TaskQueue::Delivery {
        auto made = std::make_shared<Made>(make(wanted));
        return [this, wanted, made] { take(wanted, std::move(*made)); };
    });
}

void FlamePanel::take(const Request& request, Made made) {
    view_->show(request.document, std::move(made.root),
                request.bytes == Saved ? tr("saved for backward") : tr("recorded peak"),
                request.other);
    bands_ = made.bands;
    updateLegend();
}

void FlamePanel::showEvent(QShowEvent* event) {
    Panel::showEvent(event);
    if (stale_) reload();
}

void FlamePanel::updateLegend() {
    if (view_->other())
        return legend_->setItems({{changeColour(1), tr("more in %1").arg(view_->other()->name)},
                                  {changeColour(-1), tr("less")},
                                  {changeColour(0), tr("as much")}});
    const DocumentPointer& document = workspace().document();
    legend_->setItems(document ? bandLegend(document->bands, bands_) : std::vector<Legend::Item>());
}

void FlamePanel::applyTheme() {
    view_->update();
    updateLegend();
}

core::Status FlamePanel::prepareShot(const std::vector<std::string>&) {
    chooseTree();
    stale_ = false;
    queue_.cancelAll();
    const Request wanted = request();
    if (wanted.document && wanted.document->hasMemory())
        take(wanted, make(wanted));
    else if (wanted.document)
        view_->clear(wanted.document->whyNoMemory());
    return {};
}

}  // namespace hw::viewer

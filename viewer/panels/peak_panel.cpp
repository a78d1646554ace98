// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/panels/peak_panel.h"

#include <QHBoxLayout>
#include <QPainter>
#include <QStyledItemDelegate>
#include <QVBoxLayout>
#include <algorithm>

#include "viewer/plots/band_legend.h"
#include "viewer/plots/theme.h"

namespace hw::viewer {
namespace {

constexpr int kPeakSwatch = 18;
constexpr int kTableToo = 900;  // pixels of a picture from which on it has the table

// The band's colour before the tensor's name.
class BandDelegate : public QStyledItemDelegate {
public:
    BandDelegate(const LiveTensorModel& model, QObject* parent)
        : QStyledItemDelegate(parent), model_(model) {}

    void paint(QPainter* painter, const QStyleOptionViewItem& option,
               const QModelIndex& index) const override {
        QStyleOptionViewItem text(option);
        text.rect.setLeft(option.rect.left() + kPeakSwatch);
        text.textElideMode = Qt::ElideMiddle;
        QStyledItemDelegate::paint(painter, text, index);
        const auto band = static_cast<Band>(index.data(LiveTensorModel::kBandRole).toInt());
        const QRectF swatch(option.rect.left() + 10, option.rect.center().y() - 4.0, 9, 9);
        painter->fillRect(swatch, theme().band(model_.document()->bands, band));
    }

private:
    const LiveTensorModel& model_;
};

// What is at the end of a file's name, its line, is what must be seen of it.
class LineDelegate : public QStyledItemDelegate {
public:
    using QStyledItemDelegate::QStyledItemDelegate;

    void paint(QPainter* painter, const QStyleOptionViewItem& option,
               const QModelIndex& index) const override {
        QStyleOptionViewItem text(option);
        text.textElideMode = Qt::ElideLeft;
        QStyledItemDelegate::paint(painter, text, index);
    }
};

// Lines that both sessions have keep their colours.
LiveSet peakInBandsOf(const Document& document, const Document& other) {
    LiveSet set = liveAt(other, other.curve, other.curve.peakMoment);
    if (!document.bands.byLine() || !other.bands.byLine()) return set;
    for (LiveItem& item : set.items)
        if (item.storage != core::kNone)
            item.band = document.bands.ofPlace(
                other.bands.placeOf(other.graph.storages[item.storage].sessionId));
    return set;
}

// The highest moment within the selected time.
std::size_t peakWithin(const StepCurve& curve, const std::optional<TimeRange>& range) {
    if (!range) return curve.peakMoment;
    const std::size_t last = curve.momentAt(range->end);
    std::size_t best = curve.momentAt(range->begin);
    for (std::size_t i = best; i <= last; ++i)
        if (curve.moments[i].total > curve.moments[best].total) best = i;
    return best;
}

}  // namespace

const PanelKind PeakPanel::kKind{
    .name = "peak",
    .title = "Peak",
    .help =
        "<p>What is live at the peak: each rectangle is a tensor, as large as its bytes, within "
        "its layer. The second map is the plan's peak, on the same scale.</p><p>A click on a "
        "tensor or a layer marks it in every view.</p>",
    .area = PanelArea::Upper,
    .make = makePanel<PeakPanel>};

PeakPanel::PeakPanel(Workspace& workspace) : Panel(workspace, kKind) {
    recorded_ = new TreemapView;
    planned_ = new TreemapView;
    other_ = new TreemapView;  // of another session: nothing in it can be selected here
    maps_ = new QWidget;
    auto* row = new QHBoxLayout(maps_);
    row->setContentsMargins(0, 0, 0, 0);
    row->setSpacing(0);
    row->addWidget(recorded_);
    row->addWidget(planned_);
    row->addWidget(other_);
    planned_->hide();
    other_->hide();
    model_ = new LiveTensorModel(this);
    table_ = new TableView(model_, LiveTensorModel::Place);
    table_->setItemDelegateForColumn(LiveTensorModel::Place, new BandDelegate(*model_, table_));
    table_->setItemDelegateForColumn(LiveTensorModel::Line, new LineDelegate(table_));
    table_->setLeading(LiveTensorModel::Place, kPeakSwatch);
    table_->setTextElideMode(Qt::ElideRight);
    legend_ = new Legend;
    addToHeader(legend_);
    addToHeader(table_->filterBox());
    split_ = new QSplitter(Qt::Horizontal);
    split_->setHandleWidth(1);
    split_->addWidget(maps_);
    split_->addWidget(table_);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->addWidget(split_);
    setFocusProxy(table_);
    connect(&workspace, &Workspace::documentChanged, this, &PeakPanel::reload);
    connect(&workspace.active(), &ActivePlan::planChanged, this, &PeakPanel::reload);
    connect(&workspace.selection(), &SelectionModel::rangeChanged, this, &PeakPanel::reload);
    connect(&workspace.loader(), &DocumentLoader::otherChanged, this, &PeakPanel::reload);
    connect(&workspace.selection(), &SelectionModel::selectionChanged, this,
            &PeakPanel::updateSelection);
    for (TreemapView* map : {recorded_, planned_}) {
        connect(map, &TreemapView::storagePicked, &workspace.selection(),
                &SelectionModel::selectStorage);
        connect(map, &TreemapView::layerPicked, &workspace.selection(),
                &SelectionModel::selectLayer);
    }
    connect(table_, &TableView::picked, this, [this](const QModelIndex& index) {
        const LiveItem& item = model_->item(index.row());
        if (item.storage == core::kNone) return this->workspace().selection().selectOp(item.op);
        this->workspace().selection().selectStorage(item.storage);
    });
}

void PeakPanel::reload() {
    stale_ = true;
    if (isVisible()) showSets();
}

void PeakPanel::showEvent(QShowEvent* event) {
    Panel::showEvent(event);
    if (stale_) showSets();
}

void PeakPanel::showSets() {
    stale_ = false;
    const DocumentPointer& document = workspace().document();
    if (!document || document->curve.moments.empty() || !document->hasMemory()) {
        recorded_->clear(document ? document->whyNoMemory() : QString());
        model_->setSets(document, {}, nullptr);
        planned_->clear();
        other_->clear();
        return;
    }
    const StepCurve& curve = document->curve;
    const bool whole = !workspace().selection().range();
    const std::size_t moment = peakWithin(curve, workspace().selection().range());
    LiveSet set = liveAt(*document, curve, moment);
    if (document->knowsPeakOnly() && moment != curve.peakMoment)
        for (LiveItem& item : set.items)
            item.name = tr("not loaded: of so many events only the peak's tensors are");
    recorded_->show(document, std::move(set),
                    whole ? tr("recorded peak") : tr("highest in the selected time"));
    const PlanPointer& plan = workspace().active().plan();
    const bool any = isPlanned(plan) && !plan->curve.moments.empty();
    if (any)
        planned_->show(
            document, liveAt(*document, plan->curve, plan->curve.peakMoment),
            tr("%1 at %2").arg(plan->planner, percentText(ratio(plan->budget, document->peak()))));
    planned_->setVisible(any);
    const DocumentPointer& other = workspace().loader().other();
    const bool beside = other && !other->curve.moments.empty();
    if (beside) other_->show(other, peakInBandsOf(*document, *other), other->name);
    other_->setVisible(beside);
    model_->setSets(document, recorded_->set(), any ? &planned_->set() : nullptr);
    table_->setColumnHidden(LiveTensorModel::LiveAt, !any);
    const bool typed = std::any_of(document->tensors.begin(), document->tensors.end(),
                                   [](const TensorInfo& info) { return !info.dtype.isEmpty(); });
    table_->setColumnHidden(LiveTensorModel::Shape, !typed);
    table_->setColumnHidden(LiveTensorModel::Dtype, !typed);
    table_->setColumnHidden(LiveTensorModel::MadeBy,
                            document->graph.ops.empty() && !model_->knowsMakers());
    table_->setColumnHidden(LiveTensorModel::Line,
                            document->stacks.empty() || document->bands.byLine());
    table_->setColumnHidden(LiveTensorModel::LastUse, !document->plannable);
    shareRoom();
    updateSelection();
    updateLegend();
}

// Both treemaps have the same height, so widths in proportion to the bytes make equal areas equal
// bytes.
void PeakPanel::shareRoom() {
    auto* row = static_cast<QHBoxLayout*>(maps_->layout());
    const auto parts = [](const TreemapView& map) {
        return static_cast<int>(
            std::clamp<std::int64_t>(map.set().total.count() >> 20, 1, 1 << 30));
    };
    row->setStretch(0, parts(*recorded_));
    row->setStretch(1, planned_->isHidden() ? 0 : parts(*planned_));
    row->setStretch(2, other_->isHidden() ? 0 : parts(*other_));
    if (width() > 0) split_->setSizes({width() / 2, width() - width() / 2});
    table_->fitColumns();
}

void PeakPanel::hideControls() {
    Panel::hideControls();
    picture_ = true;
}

// A narrow picture has the map alone: half a table that cannot be scrolled says nothing.
void PeakPanel::resizeEvent(QResizeEvent* event) {
    Panel::resizeEvent(event);
    if (picture_) table_->setVisible(width() >= kTableToo);
    shareRoom();
}

void PeakPanel::updateSelection() {
    if (stale_) return;
    const Selection& selection = workspace().selection().current();
    recorded_->setSelection(selection);
    planned_->setSelection(selection);
    const int row = model_->rowOf(selection.storage);
    table_->mark(row < 0 ? QModelIndex() : model_->index(row, 0));
}

void PeakPanel::updateLegend() {
    const DocumentPointer &document = workspace().document(), &other = workspace().loader().other();
    if (!document) return legend_->setItems({});
    const auto add = [](BandSet& shown, const TreemapView& map) {
        if (map.isHidden()) return;
        for (const LiveItem& item : map.set().items) shown.set(item.band);
    };
    BandSet shown, beside;
    add(shown, *recorded_);
    add(shown, *planned_);
    const bool alike = other && other->bands.byLine() == document->bands.byLine();
    add(alike ? shown : beside, *other_);
    std::vector<Legend::Item> items = bandLegend(document->bands, shown);
    if (other && !alike)
        for (const Legend::Item& item : bandLegend(other->bands, beside)) items.push_back(item);
    legend_->setItems(std::move(items));
}

void PeakPanel::applyTheme() {
    recorded_->update();
    planned_->update();
    other_->update();
    table_->viewport()->update();
    updateLegend();
}

core::Status PeakPanel::prepareShot(const std::vector<std::string>&) {
    showSets();
    return {};
}

}  // namespace hw::viewer

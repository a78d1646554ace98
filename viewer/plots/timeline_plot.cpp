// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/plots/timeline_plot.h"

#include <algorithm>
#include <cmath>

#include "viewer/plots/area_graph.h"
#include "viewer/plots/axis_ticker.h"
#include "viewer/plots/low_plot.h"
#include "viewer/plots/theme.h"

namespace hw::viewer {
namespace {

double highestOf(const QCPGraph* graph) {
    double highest = 0;
    if (graph)
        for (const QCPGraphData& point : *graph->data()) highest = std::max(highest, point.value);
    return highest;
}

constexpr int kLaneHeight = 20, kLowLane = 15;
constexpr double kTimelineHeadroom = 1.16;
constexpr double kCapacityShown = 1.6;  // of the peak; above, the device's line is off the scale

}  // namespace

TimelinePlot::TimelinePlot(QWidget* parent) : Plot(parent) {
    buildAxes();
    marks_ = new TimelineMarks(this);
    readout_ = new Readout(this, area_->axis(QCPAxis::atBottom));
    setMouseTracking(true);
    setMinimumSize(240, 110);
    applyTheme();
}

void TimelinePlot::buildAxes() {
    area_ = axisRect();
    laneArea_ = new QCPAxisRect(this, true);
    plotLayout()->addElement(1, 0, laneArea_);
    plotLayout()->setRowSpacing(0);
    auto* group = new QCPMarginGroup(this);
    for (QCPAxisRect* rect : {area_, laneArea_})
        rect->setMarginGroup(QCP::msLeft | QCP::msRight, group);
    laneArea_->axis(QCPAxis::atBottom)->setVisible(false);
    nameLanes();

    QCPAxis* time = area_->axis(QCPAxis::atBottom);
    time->setTicker(QSharedPointer<UnitTicker>::create(QStringLiteral("ms"), 7));
    setFittingLabel(area_->axis(QCPAxis::atLeft), {tr("live memory"), tr("memory")});
    setInteractions(QCP::iRangeDrag | QCP::iRangeZoom);
    for (QCPAxisRect* rect : {area_, laneArea_}) {
        rect->setRangeDrag(Qt::Horizontal);
        rect->setRangeZoom(Qt::Horizontal);
    }
    connect(time, qOverload<const QCPRange&>(&QCPAxis::rangeChanged), this,
            &TimelinePlot::clampRange);
    connect(laneArea_->axis(QCPAxis::atBottom), qOverload<const QCPRange&>(&QCPAxis::rangeChanged),
            time, qOverload<const QCPRange&>(&QCPAxis::setRange));
}

void TimelinePlot::nameLanes() {
    const QStringList lanes = LaneStrip::lanesOf(document_.get());
    const auto count = static_cast<int>(lanes.size());
    const int all = count * (isLow(*this) ? kLowLane : kLaneHeight);
    const QMargins margins = isLow(*this) ? QMargins(0, 2, 0, 4) : QMargins(0, 6, 0, 10);
    laneArea_->setMinimumMargins(margins);
    laneArea_->setMinimumSize(10, all);
    laneArea_->setMaximumSize(QWIDGETSIZE_MAX, all + margins.top() + margins.bottom());
    auto names = QSharedPointer<QCPAxisTickerText>::create();
    for (int i = 0; i < count; ++i) names->addTick(count - i - 0.5, lanes[i]);
    QCPAxis* axis = laneArea_->axis(QCPAxis::atLeft);
    axis->setRange(0, count);
    axis->setTicker(names);
}

void TimelinePlot::applyTheme() {
    Plot::applyTheme();
    QCPAxis* laneNames = laneArea_->axis(QCPAxis::atLeft);
    laneNames->setBasePen(Qt::NoPen);
    laneNames->grid()->setVisible(false);
    laneArea_->axis(QCPAxis::atBottom)->grid()->setVisible(false);
    area_->axis(QCPAxis::atBottom)->grid()->setVisible(false);
    for (auto& [band, graph] : stack_) {
        // A seam on paper, where greys may be all that is left of the colours.
        graph->setPen(QPen(theme().panel, 0.3));
        graph->setBrush(blend(theme().panel, theme().band(document_->bands, band),
                              theme().light ? 0.88 : 0.84));
    }
    if (planGraph_) planGraph_->setPen(QPen(theme().planLine(), 1.8));
    if (otherGraph_) otherGraph_->setPen(QPen(theme().otherLine(), 1.5));
    if (liveGraph_) liveGraph_->setPen(QPen(theme().liveLine(), 1.2));
    if (heldGraph_) {
        const QColor ink = theme().light ? QColor("#14171c") : QColor("#ffffff");
        QColor fill = ink;
        fill.setAlphaF(0.16F);
        heldGraph_->setPen(QPen(ink, 1.2, Qt::DotLine));
        heldGraph_->setBrush(fill);
    }
    replot(rpQueuedReplot);
}

std::vector<Band> TimelinePlot::bands() const {
    if (!document_) return {};
    const std::vector<Moment>& moments = document_->curve.moments;
    std::vector<Band> present = document_->bands.fromTheBottom();
    std::erase_if(present, [&](Band band) {
        return std::none_of(moments.begin(), moments.end(), [&](const Moment& moment) {
            return moment.byBand[band] > core::Bytes(0);
        });
    });
    return present;
}

void TimelinePlot::setDocument(const DocumentPointer& document) {
    document_ = document;
    window_ = {};
    plan_ = nullptr;
    live_ = nullptr;
    budget_.reset();
    selection_ = {};
    range_.reset();
    held_.clear();
    if (document_ && document_->curve.moments.empty()) document_ = nullptr;
    readout_->show(std::nullopt);
    buildGraphs();
    resetZoom();
}

void TimelinePlot::buildGraphs() {
    stack_.clear();
    planGraph_ = liveGraph_ = otherGraph_ = heldGraph_ = nullptr;
    lanes_ = nullptr;
    clearPlottables();
    QCPAxis *time = area_->axis(QCPAxis::atBottom), *size = area_->axis(QCPAxis::atLeft);
    QCPGraph* below = nullptr;
    for (const Band band : bands()) {
        auto* graph = new AreaGraph(time, size);
        graph->setLineStyle(QCPGraph::lsStepLeft);
        graph->setPen(Qt::NoPen);
        graph->setAntialiasedFill(false);
        graph->setAdaptiveSampling(false);  // the data are reduced already, peaks kept
        if (below) graph->setChannelFillGraph(below);
        stack_.emplace_back(band, graph);
        below = graph;
    }
    heldGraph_ = addGraph(time, size);
    heldGraph_->setLineStyle(QCPGraph::lsStepLeft);
    heldGraph_->setAdaptiveSampling(false);
    QCPGraph* lower = nullptr;
    for (const auto& [band, graph] : stack_) {
        static_cast<AreaGraph*>(graph)->setStack(lower, below);
        lower = graph;
    }
    for (QCPGraph** line : {&otherGraph_, &planGraph_, &liveGraph_}) {
        *line = addGraph(time, size);
        (*line)->setLineStyle(QCPGraph::lsStepLeft);
        (*line)->setAdaptiveSampling(false);
    }
    lanes_ = new LaneStrip(laneArea_->axis(QCPAxis::atBottom), laneArea_->axis(QCPAxis::atLeft));
    lanes_->setDocument(document_);
    nameLanes();
    const int ticks =
        document_ && document_->time.axisUnit().size() > 3 ? 4 : 7;  // "events" is long
    if (document_)
        time->setTicker(QSharedPointer<UnitTicker>::create(document_->time.axisUnit(), ticks));
    setFittingLabel(time, {document_ && !document_->plannable ? tr("time") : tr("step time")});
    const bool memory = !document_ || document_->hasMemory();
    const QStringList labels{tr("live memory"), tr("memory")};
    setFittingLabel(size, document_ && memory && !document_->device.isEmpty()
                              ? QStringList(tr("live memory of %1").arg(document_->device)) + labels
                              : labels);
    size->setTickLabels(memory);
    size->setTicks(memory);
    if (document_) size->setTicker(QSharedPointer<UnitTicker>::create(document_->size.name, 6));
    applyTheme();
}

void TimelinePlot::setBudget(std::optional<core::Bytes> budget) {
    budget_ = budget;
    rescale();
    replot(rpQueuedReplot);
}

void TimelinePlot::setSelection(const Selection& selection) {
    selection_ = selection;
    if (lanes_) lanes_->setSelectedOp(selection.op);
    measureHeld();
    if (selection.kind == Selection::Kind::Op || selection.kind == Selection::Kind::None)
        showOp(selection.op);
    else
        readout_->show(std::nullopt);
    rebuild();
}

void TimelinePlot::setRange(std::optional<TimeRange> range) {
    range_ = range;
    replot(rpQueuedReplot);
}

double TimelinePlot::endMilliseconds() const {
    double end = document_ ? milliseconds(document_->curve.time) : 1;
    if (plan_) end = std::max(end, milliseconds(plan_->curve.time));
    if (live_) end = std::max(end, milliseconds(live_->time));
    if (other_) end = std::max(end, milliseconds(other_->curve.time));
    return std::max(end, kNarrowest);
}

QCPRange TimelinePlot::visibleTime() const {
    return area_->axis(QCPAxis::atBottom)->range();
}

void TimelinePlot::rescale() {
    if (!document_) return;
    if (!document_->hasMemory()) return area_->axis(QCPAxis::atLeft)->setRange(0, 1);
    core::Bytes highest = document_->peak();
    if (plan_) highest = std::max(highest, plan_->peak);
    if (live_) highest = std::max(highest, live_->peak);
    if (other_) highest = std::max(highest, other_->peak());
    if (budget_) highest = std::max(highest, *budget_);
    if (document_->capacity && ratio(*document_->capacity, highest) < kCapacityShown)
        highest = std::max(highest, *document_->capacity);
    area_->axis(QCPAxis::atLeft)
        ->setRange(0, std::max(1e-9, document_->size.value(highest) * headroom()));
}

// Above the highest curve there is room for a line of text for every peak, so that none lies on a
// curve.
double TimelinePlot::headroom() const {
    const double height = area_->height(),
                 labels = (plan_ && !isLow(*this) ? 2 : 1) * kPeakLabel + 6;
    return height > 2 * labels ? std::max(kTimelineHeadroom, height / (height - labels)) : 2;
}

// Keys stay inside the visible range, because vector pictures are not clipped.
void TimelinePlot::rebuild() {
    if (!document_ || stack_.empty()) return replot(rpQueuedReplot);
    const QCPRange seen = visibleTime();
    const core::Nanoseconds from = nanoseconds(seen.lower), to = nanoseconds(seen.upper);
    const int columns = std::max(64, area_->width());
    const auto key = [&](core::Nanoseconds time) {
        return std::clamp(milliseconds(time), seen.lower, seen.upper);
    };
    std::vector<QVector<QCPGraphData>> data(stack_.size());
    if (document_->series) window_ = document_->series->window(from, to, columns);
    const StepCurve& drawn = curve();
    const std::vector<std::size_t> chosen = visibleMoments(drawn, from, to, columns);
    for (std::size_t n = 0; n <= chosen.size() && !chosen.empty(); ++n) {
        const bool closing = n == chosen.size();
        const Moment& moment = drawn.moments[chosen[closing ? n - 1 : n]];
        const double at = key(closing ? moment.end : moment.begin);
        core::Bytes top;
        for (std::size_t i = 0; i < stack_.size(); ++i) {
            top += moment.byBand[stack_[i].first];
            data[i].push_back({at, document_->size.value(top)});
        }
    }
    for (std::size_t i = 0; i < stack_.size(); ++i) stack_[i].second->data()->set(data[i], true);

    rebuildLine(*planGraph_, plan_ ? &plan_->curve : nullptr, columns);
    rebuildLine(*liveGraph_, live_.get(), columns);
    rebuildLine(*otherGraph_, other_ ? &other_->curve : nullptr, columns);
    rebuildHeld(from, to, columns);
    replot(rpQueuedReplot);
}

const StepCurve& TimelinePlot::curve() const {
    return document_->series && !window_.moments.empty() ? window_ : document_->curve;
}

double TimelinePlot::highestDrawn() const {
    return highestOf(stack_.empty() ? nullptr : stack_.back().second);
}

double TimelinePlot::highestLive() const {
    return highestOf(liveGraph_);
}

double TimelinePlot::highestOther() const {
    return highestOf(otherGraph_);
}

void TimelinePlot::resizeEvent(QResizeEvent* event) {
    const bool narrow = width() < kNarrow;
    const int above = isLow(*this) ? 4 : narrow ? 8 : 14, below = isLow(*this) ? 18 : 24;
    area_->setMinimumMargins(narrow ? QMargins(46, above, 12, below)
                                    : QMargins(72, above, kLabelMargin, below));
    nameLanes();
    Plot::resizeEvent(event);
    rescale();  // the labels above the peak need pixels
    rebuild();
}

}  // namespace hw::viewer

// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/plots/timeline_plot.h"

#include <QMouseEvent>
#include <algorithm>
#include <array>
#include <cmath>

#include "viewer/plots/area_graph.h"
#include "viewer/plots/axis_ticker.h"
#include "viewer/plots/theme.h"

namespace hw::viewer {
namespace {

// From the bottom: what lasts the whole step first, what comes and goes on top.
constexpr std::array<core::Category, core::kCategoryCount> kStackOrder{
    core::Category::Parameter, core::Category::OptimizerState, core::Category::Input,
    core::Category::Unknown,   core::Category::Gradient,       core::Category::Activation,
    core::Category::Temporary, core::Category::Workspace};

constexpr int kLaneHeight = 20;
constexpr int kRightMargin = 118;  // room for the budget's label
constexpr double kHeadroom = 1.16;
constexpr double kNarrowest = 1e-3;  // milliseconds

}  // namespace

TimelinePlot::TimelinePlot(QWidget* parent) : Plot(parent) {
    buildAxes();
    marks_ = new TimelineMarks(this);
    readout_ = new Readout(this, area_->axis(QCPAxis::atBottom));
    setMouseTracking(true);
    setMinimumSize(360, 220);
    applyTheme();
}

void TimelinePlot::buildAxes() {
    area_ = axisRect();
    laneArea_ = new QCPAxisRect(this, true);
    plotLayout()->addElement(1, 0, laneArea_);
    plotLayout()->setRowSpacing(0);
    laneArea_->setMinimumSize(10, LaneStrip::kLanes * kLaneHeight);
    laneArea_->setMaximumSize(QWIDGETSIZE_MAX, LaneStrip::kLanes * kLaneHeight + 16);
    laneArea_->setMinimumMargins(QMargins(0, 6, 0, 10));
    auto* group = new QCPMarginGroup(this);
    for (QCPAxisRect* rect : {area_, laneArea_})
        rect->setMarginGroup(QCP::msLeft | QCP::msRight, group);
    area_->setMinimumMargins(QMargins(72, 14, kRightMargin, 24));
    laneArea_->axis(QCPAxis::atBottom)->setVisible(false);
    QCPAxis* laneNames = laneArea_->axis(QCPAxis::atLeft);
    laneNames->setRange(0, LaneStrip::kLanes);
    auto names = QSharedPointer<QCPAxisTickerText>::create();
    names->addTick(2.5, tr("phase"));
    names->addTick(1.5, tr("layer"));
    names->addTick(0.5, tr("op"));
    laneNames->setTicker(names);

    QCPAxis* time = area_->axis(QCPAxis::atBottom);
    time->setTicker(QSharedPointer<UnitTicker>::create(QStringLiteral("ms"), 7));
    time->setLabel(tr("step time"));
    area_->axis(QCPAxis::atLeft)->setLabel(tr("live memory"));
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

void TimelinePlot::applyTheme() {
    Plot::applyTheme();
    QCPAxis* laneNames = laneArea_->axis(QCPAxis::atLeft);
    laneNames->setBasePen(Qt::NoPen);
    laneNames->grid()->setVisible(false);
    laneArea_->axis(QCPAxis::atBottom)->grid()->setVisible(false);
    area_->axis(QCPAxis::atBottom)->grid()->setVisible(false);
    for (auto& [category, graph] : stack_) {
        graph->setBrush(
            blend(theme().panel, theme().category(category), theme().light ? 0.88 : 0.84));
    }
    if (planGraph_) planGraph_->setPen(QPen(theme().planLine(), 1.8));
    replot(rpQueuedReplot);
}

std::vector<core::Category> TimelinePlot::categories() const {
    std::vector<core::Category> present;
    if (!document_) return present;
    for (const core::Category category : kStackOrder)
        for (const Moment& moment : document_->curve.moments)
            if (moment.byCategory[static_cast<std::size_t>(category)] > core::Bytes(0)) {
                present.push_back(category);
                break;
            }
    return present;
}

void TimelinePlot::setDocument(const DocumentPointer& document) {
    document_ = document;
    window_ = {};
    plan_ = nullptr;
    budget_.reset();
    selected_ = core::kNone;
    if (document_ && document_->curve.moments.empty()) document_ = nullptr;
    readout_->show(std::nullopt);
    buildGraphs();
    resetZoom();
}

void TimelinePlot::buildGraphs() {
    stack_.clear();
    planGraph_ = nullptr;
    lanes_ = nullptr;
    clearPlottables();
    QCPAxis *time = area_->axis(QCPAxis::atBottom), *size = area_->axis(QCPAxis::atLeft);
    QCPGraph* below = nullptr;
    for (const core::Category category : categories()) {
        auto* graph = new AreaGraph(time, size);
        graph->setLineStyle(QCPGraph::lsStepLeft);
        graph->setPen(Qt::NoPen);
        graph->setAntialiasedFill(false);
        graph->setAdaptiveSampling(false);  // the data are reduced already, peaks kept
        if (below) graph->setChannelFillGraph(below);
        stack_.emplace_back(category, graph);
        below = graph;
    }
    QCPGraph* lower = nullptr;
    for (const auto& [category, graph] : stack_) {
        static_cast<AreaGraph*>(graph)->setStack(lower, below);
        lower = graph;
    }
    planGraph_ = addGraph(time, size);
    planGraph_->setLineStyle(QCPGraph::lsStepLeft);
    planGraph_->setAdaptiveSampling(false);
    lanes_ = new LaneStrip(laneArea_->axis(QCPAxis::atBottom), laneArea_->axis(QCPAxis::atLeft));
    lanes_->setDocument(document_);
    const int ticks = document_ && document_->time.unit.size() > 3 ? 4 : 7;  // "events" is long
    if (document_) time->setTicker(QSharedPointer<UnitTicker>::create(document_->time.unit, ticks));
    if (document_) time->setLabel(document_->plannable ? tr("step time") : tr("time"));
    if (document_) size->setTicker(QSharedPointer<UnitTicker>::create(document_->size.name, 6));
    applyTheme();
}

void TimelinePlot::setPlan(const PlanPointer& plan) {
    const double before = endMilliseconds();
    const bool whole = visibleTime().upper >= before * 0.999 && visibleTime().lower <= 0;
    plan_ = plan;
    if (whole) return resetZoom();
    rescale();
    rebuild();
}

void TimelinePlot::setBudget(std::optional<core::Bytes> budget) {
    budget_ = budget;
    rescale();
    replot(rpQueuedReplot);
}

void TimelinePlot::setSelectedOp(core::OpIndex op) {
    selected_ = op;
    if (lanes_) lanes_->setSelectedOp(op);
    if (document_ && op != core::kNone) {
        for (const LaneSpan& span : document_->lanes.ops) {
            if (span.id != op) continue;
            const double middle = (milliseconds(span.begin) + milliseconds(span.end)) / 2;
            const QCPRange seen = visibleTime();
            if (!seen.contains(middle))
                area_->axis(QCPAxis::atBottom)
                    ->setRange(middle - seen.size() / 2, middle + seen.size() / 2);
            showReadout(middle);
            break;
        }
    }
    replot(rpQueuedReplot);
}

double TimelinePlot::endMilliseconds() const {
    double end = document_ ? milliseconds(document_->curve.time) : 1;
    if (plan_) end = std::max(end, milliseconds(plan_->curve.time));
    return std::max(end, kNarrowest);
}

QCPRange TimelinePlot::visibleTime() const {
    return area_->axis(QCPAxis::atBottom)->range();
}

void TimelinePlot::rescale() {
    if (!document_) return;
    core::Bytes highest = document_->peak();
    if (plan_) highest = std::max(highest, plan_->peak);
    if (budget_) highest = std::max(highest, *budget_);
    area_->axis(QCPAxis::atLeft)
        ->setRange(0, std::max(1e-9, document_->size.value(highest) * kHeadroom));
}

void TimelinePlot::resetZoom() {
    rescale();
    area_->axis(QCPAxis::atBottom)->setRange(0, endMilliseconds());
    rebuild();
}

void TimelinePlot::zoom(double factor) {
    const QCPRange seen = visibleTime();
    const double middle = seen.center(), half = std::max(seen.size() / factor, kNarrowest) / 2;
    area_->axis(QCPAxis::atBottom)->setRange(middle - half, middle + half);
    replot(rpQueuedReplot);
}

void TimelinePlot::pan(double share) {
    const QCPRange seen = visibleTime();
    area_->axis(QCPAxis::atBottom)
        ->setRange(seen.lower + share * seen.size(), seen.upper + share * seen.size());
    replot(rpQueuedReplot);
}

void TimelinePlot::clampRange(const QCPRange& wanted) {
    if (clamping_) return;
    clamping_ = true;
    const double end = endMilliseconds();
    const double width = std::clamp(wanted.size(), std::min(kNarrowest, end), end);
    const double lower = std::clamp(wanted.lower, 0.0, end - width);
    area_->axis(QCPAxis::atBottom)->setRange(lower, lower + width);
    laneArea_->axis(QCPAxis::atBottom)->setRange(lower, lower + width);
    clamping_ = false;
    rebuild();
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
            top += moment.byCategory[static_cast<std::size_t>(stack_[i].first)];
            data[i].push_back({at, document_->size.value(top)});
        }
    }
    for (std::size_t i = 0; i < stack_.size(); ++i) stack_[i].second->data()->set(data[i], true);

    QVector<QCPGraphData> line;
    if (plan_) {
        const std::vector<std::size_t> points = visibleMoments(plan_->curve, from, to, columns);
        for (const std::size_t i : points) {
            const Moment& moment = plan_->curve.moments[i];
            if (moment.end < from || moment.begin > to) continue;
            line.push_back({key(moment.begin), document_->size.value(moment.total)});
        }
        if (!line.isEmpty())
            line.push_back({key(plan_->curve.moments[points.back()].end), line.back().value});
    }
    planGraph_->data()->set(line, true);
    replot(rpQueuedReplot);
}

const StepCurve& TimelinePlot::curve() const {
    return document_->series && !window_.moments.empty() ? window_ : document_->curve;
}

double TimelinePlot::highestDrawn() const {
    double highest = 0;
    if (!stack_.empty())
        for (const QCPGraphData& point : *stack_.back().second->data())
            highest = std::max(highest, point.value);
    return highest;
}

void TimelinePlot::showReadout(std::optional<double> at) {
    if (!document_ || !at || *at < 0 || *at > endMilliseconds())
        readout_->show(std::nullopt);
    else
        readout_->show(readoutAt(*document_, curve(), plan_, nanoseconds(*at)));
}

void TimelinePlot::mouseMoveEvent(QMouseEvent* event) {
    QCustomPlot::mouseMoveEvent(event);
    const double x = event->position().x();
    const bool inside = x >= area_->left() && x <= area_->right();
    showReadout(inside ? std::optional(area_->axis(QCPAxis::atBottom)->pixelToCoord(x))
                       : std::nullopt);
    layer(QStringLiteral("overlay"))->replot();
}

void TimelinePlot::leaveEvent(QEvent* event) {
    QCustomPlot::leaveEvent(event);
    showReadout(std::nullopt);
    layer(QStringLiteral("overlay"))->replot();
}

void TimelinePlot::mousePressEvent(QMouseEvent* event) {
    pressed_ = event->pos();
    QCustomPlot::mousePressEvent(event);
}

void TimelinePlot::mouseReleaseEvent(QMouseEvent* event) {
    QCustomPlot::mouseReleaseEvent(event);
    if (!document_ || (event->pos() - pressed_).manhattanLength() > 3) return;
    const double at = area_->axis(QCPAxis::atBottom)->pixelToCoord(event->position().x());
    if (at < 0 || at > milliseconds(document_->curve.time)) return;
    const Moment& moment = curve().moments[curve().momentAt(nanoseconds(at))];
    if (moment.op != core::kNone) emit opClicked(moment.op);
}

void TimelinePlot::resizeEvent(QResizeEvent* event) {
    QCustomPlot::resizeEvent(event);
    rebuild();
}

TimelineMarks::TimelineMarks(TimelinePlot* plot)
    : QCPLayerable(plot, QStringLiteral("legend")), timeline_(*plot) {}

void TimelineMarks::applyDefaultAntialiasingHint(QCPPainter* painter) const {
    painter->setAntialiasing(true);
}

void TimelineMarks::drawBudget(QCPPainter* painter) {
    const QRectF area = timeline_.area_->rect();
    const QString size = timeline_.document_->size.text(*timeline_.budget_);
    const double y = timeline_.area_->axis(QCPAxis::atLeft)
                         ->coordToPixel(timeline_.document_->size.value(*timeline_.budget_));
    painter->setPen(QPen(theme().text, 1.2, Qt::DashLine));
    painter->drawLine(QPointF(area.left(), y), QPointF(area.right(), y));
    painter->setFont(uiFont(kAxisPixels, true));
    painter->setPen(theme().text);
    painter->drawText(QRectF(area.right() + 8, y - 10, kRightMargin - 8, 20),
                      Qt::AlignVCenter | Qt::AlignLeft, TimelinePlot::tr("budget %1").arg(size));
}

QRectF TimelineMarks::drawPeak(QCPPainter* painter, const StepCurve& curve, const QString& text,
                               const QColor& ink, const QRectF& avoid) {
    const QRectF area = timeline_.area_->rect();
    const Moment& moment = curve.moments[curve.peakMoment];
    const double x =
        timeline_.area_->axis(QCPAxis::atBottom)->coordToPixel(milliseconds(moment.begin));
    if (x < area.left() || x > area.right()) return {};
    const double y = timeline_.area_->axis(QCPAxis::atLeft)
                         ->coordToPixel(timeline_.document_->size.value(curve.peak));
    const QFontMetricsF metrics(uiFont(kAxisPixels, true));
    const double width = metrics.horizontalAdvance(text) + 16, height = metrics.height() + 7;
    const bool main = avoid.isNull();
    double left = x + 8;
    if (left + width > area.right()) left = std::max(area.left(), x - 8 - width);
    QRectF box(left, main ? std::max(area.top(), y - height - 6) : y - height - 6, width, height);
    if (!main && box.intersects(avoid)) box.moveTop(y + 8);
    painter->setPen(QPen(ink, main ? 1.4 : 1));
    if (main) {
        painter->drawLine(QPointF(x, box.top()), QPointF(x, area.bottom()));
    } else {
        painter->setBrush(theme().panel);
        painter->drawEllipse(QPointF(x, y), 3.5, 3.5);
    }
    QColor paper = theme().panel;
    if (main) {
        paper = ink;
        paper.setAlphaF(theme().light ? 0.14F : 0.22F);
        painter->setPen(Qt::NoPen);
        painter->setBrush(theme().panel);
        painter->drawRoundedRect(box, 3, 3);
    } else {
        paper.setAlphaF(0.85F);
    }
    drawBadge(painter, box.topLeft(), text, ink, paper);
    return box;
}

void TimelineMarks::draw(QCPPainter* painter) {
    if (!timeline_.document_) return;
    const Document& document = *timeline_.document_;
    if (timeline_.budget_ && document.plannable) drawBudget(painter);
    // Call stacks are long: their inner end tells most.
    const QFontMetricsF metrics(uiFont(kAxisPixels, true));
    const double most = timeline_.area_->rect().width() * 0.45;
    const auto named = [&](const QString& text, core::Bytes peak, const StepCurve& curve) {
        const QString place = placeOf(document.graph, curve.moments[curve.peakMoment].op);
        const QString figure = text.arg(document.size.text(peak));
        return place.isEmpty() ? figure
                               : figure + QStringLiteral(" · ") +
                                     metrics.elidedText(place, Qt::ElideLeft, most);
    };
    const QRectF main = drawPeak(
        painter, document.curve,
        named(TimelinePlot::tr("peak %1"), document.peak(), document.curve), theme().alert, {});
    if (timeline_.plan_ && !timeline_.plan_->curve.moments.empty())
        drawPeak(
            painter, timeline_.plan_->curve,
            named(TimelinePlot::tr("plan peak %1"), timeline_.plan_->peak, timeline_.plan_->curve),
            theme().planLine(), main.isNull() ? QRectF(-1, -1, 0.5, 0.5) : main);
}

}  // namespace hw::viewer

// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/plots/live_steps_plot.h"

#include <QMouseEvent>
#include <QToolTip>
#include <algorithm>
#include <cmath>

#include "viewer/plots/area_graph.h"
#include "viewer/plots/axis_ticker.h"
#include "viewer/plots/planner_style.h"
#include "viewer/plots/theme.h"

namespace hw::viewer {
namespace {

constexpr double kLiveHeadroom = 1.15, kFill = 0.55;
constexpr double kFewest = 20;  // steps that the axis has room for from the start
constexpr int kLiveTop = 12, kBetweenPlots = 14, kBelow = 40;
constexpr int kTimesHeight = 120, kHeightForTimes = 360;  // pixels

QMargins margins(int top, int bottom) {
    return {kLeftMargin, top, kRightMargin, bottom};
}

}  // namespace

QColor liveModeColour(const QString& mode) {
    if (mode == QLatin1String("plan")) return theme().accent;
    if (mode == QLatin1String("dtr")) return plannerStyle(QStringLiteral("dtr:eqclass")).colour();
    if (mode == QLatin1String("mimose")) return plannerStyle(mode).colour();
    return theme().muted;
}

QColor liveCostColour() {
    return theme().category(core::Category::Temporary);
}

LiveStepsPlot::LiveStepsPlot(QWidget* parent) : Plot(parent) {
    yAxis->setLabel(tr("peak"));
    setInteractions(QCP::iRangeDrag | QCP::iRangeZoom);
    buildTimes();
    for (QCPAxisRect* rect : axisRects()) {
        rect->setRangeDrag(Qt::Horizontal);
        rect->setRangeZoom(Qt::Horizontal);
        QCPAxis* steps = rect->axis(QCPAxis::atBottom);
        steps->setTicker(QSharedPointer<WholeTicker>::create(QString(), 8));
        connect(steps, qOverload<const QCPRange&>(&QCPAxis::rangeChanged), this,
                &LiveStepsPlot::keepWithin);
    }
    edge_ = new QCPGraph(xAxis, yAxis);
    edge_->setLineStyle(QCPGraph::lsStepLeft);
    edge_->setLayer(QStringLiteral("axes"));  // over the areas, which come later
    budgetLine_ = new QCPItemStraightLine(this);
    budgetLine_->setLayer(QStringLiteral("axes"));
    budgetText_ = new QCPItemText(this);
    budgetText_->setClipToAxisRect(false);
    budgetText_->setPositionAlignment(Qt::AlignLeft | Qt::AlignVCenter);
    budgetText_->position->setTypeX(QCPItemPosition::ptAxisRectRatio);
    budgetText_->setPadding(QMargins(8, 0, 0, 0));
    setMinimumHeight(90);
    setMouseTracking(true);
    clear({});
    showTimes(false);
    applyTheme();
}

void LiveStepsPlot::buildTimes() {
    times_ = new QCPAxisRect(this);
    plotLayout()->addElement(1, 0, times_);
    plotLayout()->setRowSpacing(0);
    for (QCPAxis* axis : times_->axes()) {
        axis->setLayer(QStringLiteral("axes"));
        axis->grid()->setLayer(QStringLiteral("grid"));
    }
    auto* group = new QCPMarginGroup(this);
    for (QCPAxisRect* rect : axisRects()) rect->setMarginGroup(QCP::msLeft | QCP::msRight, group);
    QCPAxis *steps = times_->axis(QCPAxis::atBottom), *time = times_->axis(QCPAxis::atLeft);
    time->setTicker(QSharedPointer<UnitTicker>::create(QStringLiteral("ms"), 3));
    time->setLabel(tr("step time"));
    took_ = makeGraph(steps, time);
    cost_ = makeGraph(steps, time);
}

// Where the room is short, the peaks have it.
void LiveStepsPlot::showTimes(bool shown) {
    times_->setVisible(shown);
    times_->setMinimumSize(0, shown ? kTimesHeight : 0);
    times_->setMaximumSize(QWIDGETSIZE_MAX, shown ? kTimesHeight : 0);
    times_->setAutoMargins(shown ? QCP::msAll : QCP::msLeft | QCP::msRight);
    times_->setMinimumMargins(shown ? margins(kBetweenPlots, kBelow) : QMargins());
    if (!shown) times_->setMargins({});
    axisRect()->setMinimumMargins(margins(kLiveTop, shown ? kBetweenPlots : kBelow));
    xAxis->setTickLabels(!shown);
    xAxis->setLabel(shown ? QString() : tr("step"));
    times_->axis(QCPAxis::atBottom)->setLabel(tr("step"));
}

void LiveStepsPlot::resizeEvent(QResizeEvent* event) {
    const bool room = event->size().height() >= kHeightForTimes;
    if (room != timesShown()) {
        showTimes(room);
        emit timesChanged();
    }
    Plot::resizeEvent(event);
}

void LiveStepsPlot::applyTheme() {
    Plot::applyTheme();
    for (QCPAxisRect* rect : axisRects()) rect->axis(QCPAxis::atBottom)->grid()->setVisible(false);
    const auto area = [](const QColor& colour) { return blend(theme().panel, colour, kFill); };
    for (std::size_t i = 0; i < graphs_.size(); ++i)
        graphs_[i]->setBrush(area(liveModeColour(modes_[i])));
    edge_->setPen(QPen(theme().planLine(), 1.4));
    took_->setBrush(area(theme().muted));
    cost_->setBrush(blend(theme().panel, liveCostColour(), 0.9));
    budgetLine_->setPen(QPen(theme().text, 1.2, Qt::DashLine));
    budgetText_->setColor(theme().text);
    budgetText_->setFont(uiFont(kAxisPixels, true));
    replot(rpQueuedReplot);
}

double LiveStepsPlot::end() const {
    return begin_ + std::max(kFewest, static_cast<double>(steps_.size()));
}

// A closer look stays where it is while steps are added.
void LiveStepsPlot::keepWithin(const QCPRange& wanted) {
    const double width = std::clamp(wanted.size(), kFewest / 2, end() - begin_);
    const double lower = std::clamp(wanted.lower, begin_, end() - width);
    for (QCPAxisRect* rect : axisRects()) {
        QCPAxis* steps = rect->axis(QCPAxis::atBottom);
        const QSignalBlocker quiet(steps);
        steps->setRange(lower, lower + width);
    }
}

void LiveStepsPlot::clear(const std::optional<core::Bytes>& budget) {
    steps_.clear();
    begin_ = 0;
    modes_.clear();
    for (AreaGraph* graph : graphs_) removePlottable(graph);
    graphs_.clear();
    for (QCPGraph* graph : std::initializer_list<QCPGraph*>{edge_, took_, cost_})
        graph->data()->clear();
    longest_ = {};
    budget_ = budget;
    budgetText_->setVisible(budget.has_value());
    budgetLine_->setVisible(budget.has_value());
    if (budget) drawBudget(*budget);
    xAxis->setRange(begin_, end());
}

void LiveStepsPlot::drawBudget(core::Bytes budget) {
    measureIn(SizeUnit::fitting(budget));
    budgetText_->setText(tr("budget %1").arg(size_.text(budget)));
    budgetText_->position->setCoords(1, size_.value(budget));
    budgetLine_->point1->setCoords(0, size_.value(budget));
    budgetLine_->point2->setCoords(1, size_.value(budget));
}

void LiveStepsPlot::measureIn(const SizeUnit& size) {
    size_ = size;
    yAxis->setTicker(QSharedPointer<UnitTicker>::create(size_.name, 5));
}

AreaGraph* LiveStepsPlot::makeGraph(QCPAxis* key, QCPAxis* value) {
    auto* made = new AreaGraph(key, value);
    made->setLineStyle(QCPGraph::lsStepLeft);
    made->setAdaptiveSampling(false);
    made->setPen(Qt::NoPen);
    return made;
}

AreaGraph& LiveStepsPlot::graphOf(std::size_t mode, const QString& name) {
    for (std::size_t i = graphs_.size(); i <= mode; ++i) {
        graphs_.push_back(makeGraph(xAxis, yAxis));
        modes_.push_back(name);
        graphs_.back()->setBrush(blend(theme().panel, liveModeColour(name), kFill));
    }
    return *graphs_[mode];
}

// A graph ends with nothing at the end of its last step, which goes when the next one joins it.
void LiveStepsPlot::add(const LiveStep& step, const QString& mode) {
    const double from = begin_ + static_cast<double>(steps_.size());
    const auto append = [from](QCPGraph& graph, double value, double after) {
        graph.data()->remove(from);
        graph.addData(from, value);
        graph.addData(from + 1, after);
    };
    const double peak = size_.value(step.peak);
    append(graphOf(step.mode, mode), peak, 0);
    append(*edge_, peak, peak);
    append(*took_, milliseconds(step.time), 0);
    append(*cost_, milliseconds(step.recomputing + step.runtime), 0);
    // The first step is like no other, and would make the others small.
    if (steps_.size() <= 1) longest_ = step.time;
    longest_ = std::max(longest_, step.time);
}

void LiveStepsPlot::show(const LiveProgress& progress, const std::optional<core::Bytes>& budget) {
    const std::vector<LiveStep>& steps = progress.history();
    if (steps.size() < steps_.size() || budget != budget_) clear(budget);
    const SizeUnit fitting = SizeUnit::fitting(progress.highestOfAll());
    if (!budget && fitting.name != size_.name) {  // what is drawn is in another unit
        clear(budget);
        measureIn(fitting);
    }
    const bool whole = xAxis->range().size() >= end() - begin_ - 0.5;
    for (std::size_t i = steps_.size(); i < steps.size(); ++i) {
        if (i == 0) begin_ = static_cast<double>(steps[i].step);
        add(steps[i], progress.modeOf(steps[i]));
        steps_.push_back(steps[i]);
    }
    if (whole) xAxis->setRange(begin_, end());
    const double top =
        size_.value(std::max(budget.value_or(core::Bytes()), progress.highestOfAll()));
    yAxis->setRange(0, std::max(1e-9, top * kLiveHeadroom));
    times_->axis(QCPAxis::atLeft)
        ->setRange(0, std::max(1e-6, milliseconds(longest_) * kLiveHeadroom));
    replot(rpQueuedReplot);
}

double LiveStepsPlot::highestDrawn() const {
    double highest = 0;
    for (const AreaGraph* graph : graphs_)
        for (const QCPGraphData& each : *graph->data()) highest = std::max(highest, each.value);
    return highest;
}

QString LiveStepsPlot::textAt(double at) const {
    const double place = std::floor(at - begin_);
    if (!(place >= 0) || place >= static_cast<double>(steps_.size())) return {};
    const LiveStep& step = steps_[static_cast<std::size_t>(place)];
    const TimeFormat time = TimeFormat::fitting(step.time);
    return tr("step %1 (%2): peak %3, %4 evictions, %5 ops recomputed; %6, of which DTR and "
              "plans took %7")
        .arg(step.step)
        .arg(liveModeText(modes_[step.mode]), size_.text(step.peak))
        .arg(step.evictions)
        .arg(step.recomputedOps)
        .arg(time.text(step.time), time.text(step.recomputing + step.runtime));
}

void LiveStepsPlot::mouseMoveEvent(QMouseEvent* event) {
    Plot::mouseMoveEvent(event);
    const bool beside = axisRectAt(event->pos()) == nullptr;
    const QString text = beside ? QString() : textAt(xAxis->pixelToCoord(event->pos().x()));
    if (text.isEmpty() || event->buttons() != Qt::NoButton) return QToolTip::hideText();
    QToolTip::showText(event->globalPosition().toPoint(), text, this);
}

}  // namespace hw::viewer

// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/plots/trace_plot.h"

#include <algorithm>

#include "viewer/plots/axis_ticker.h"
#include "viewer/plots/theme.h"

namespace hw::viewer {
namespace {

// Above the bars: the title, the phases, the steps that recompute.
constexpr int kTraceTop = 68;
constexpr double kTraceClosest = 1e-5;

QString lifetimeText(const TraceBar* bar) {
    if (!bar) return TracePlot::tr("not in memory");
    return TracePlot::tr("in memory, %1").arg(TracePlot::tr(core::traitsOf(bar->by).leaves));
}

}  // namespace

TracePlot::TracePlot(QWidget* parent) : PlanePlot(kTraceTop, kTraceClosest, parent) {
    new TraceLayer(this, TraceLayer::Part::Bars);
    new TraceLayer(this, TraceLayer::Part::Marks);
}

void TracePlot::show(const DocumentPointer& document, const PlanPointer& plan) {
    const bool another = document != document_;
    document_ = document && !document->curve.moments.empty() ? document : nullptr;
    plan_ = isPlanned(plan) ? plan : nullptr;
    if (!document_)
        trace_ = {};
    else if (plan_)
        trace_ = planTrace(document_->graphOf(*plan_), plan_->schedule, plan_->curve);
    else
        trace_ = planTrace(document_->graph, document_->baseline, document_->curve);
    if (another) selected_ = core::kNone;
    labelAxes();
    resetZoom();
}

void TracePlot::setAxes(TraceAxes axes) {
    axes_ = axes;
    labelAxes();
    resetZoom();
}

void TracePlot::labelAxes() {
    const QString size = document_ ? document_->size.name : QString();
    xAxis->setTicker(
        QSharedPointer<UnitTicker>::create(axes_.steps ? QString() : QStringLiteral("ms"), 7));
    yAxis->setTicker(QSharedPointer<UnitTicker>::create(axes_.bytes ? size : QString(), 6));
    xAxis->setLabel(axes_.steps ? tr("step of the schedule") : tr("time of the plan"));
    setFittingLabel(yAxis, axes_.bytes ? QStringList{tr("storages by birth, as high as they are "
                                                        "large"),
                                                     tr("storages by birth"), tr("storages")}
                                       : QStringList{tr("storages, in the order of their birth"),
                                                     tr("storages by birth"), tr("storages")});
}

double TracePlot::rowUnit() const {
    return axes_.bytes && document_ ? document_->size.bytes : 1;
}

double TracePlot::acrossOf(std::int32_t step) const {
    return axes_.steps ? step : milliseconds(trace_.begin[step]);
}

QCPRange TracePlot::whole(const QCPAxis* axis) const {
    if (trace_.rows.empty() || trace_.steps() == 0) return {0, 1};
    if (axis == xAxis) return {0, std::max(1e-6, acrossOf(trace_.steps()))};
    const double rows = axes_.bytes ? static_cast<double>(trace_.below.back().count())
                                    : static_cast<double>(trace_.rows.size());
    return {0, std::max(rows, 1.0) / rowUnit()};
}

void TracePlot::zoom(double factor) {
    const QCPRange seen = xAxis->range();
    const double half = seen.size() / factor / 2;
    xAxis->setRange(seen.center() - half, seen.center() + half);
    replot(rpQueuedReplot);
}

TraceView TracePlot::view() const {
    const QRect area = axisRect()->rect();
    return {axes_,
            xAxis->range().lower,
            xAxis->range().upper,
            yAxis->range().lower * rowUnit(),
            yAxis->range().upper * rowUnit(),
            area.width(),
            area.height()};
}

std::int32_t TracePlot::stepAt(double x) const {
    const double at = xAxis->pixelToCoord(x);
    return axes_.steps ? std::clamp(static_cast<std::int32_t>(at), 0, trace_.steps() - 1)
                       : trace_.stepAt(nanoseconds(at));
}

std::int32_t TracePlot::rowAt(double y) const {
    const double at = yAxis->pixelToCoord(y) * rowUnit();
    if (at < 0 || at >= whole(yAxis).upper * rowUnit()) return core::kNone;
    if (!axes_.bytes) return static_cast<std::int32_t>(at);
    const auto above = std::upper_bound(trace_.below.begin(), trace_.below.end(),
                                        core::Bytes(static_cast<std::int64_t>(at)));
    return std::clamp(static_cast<std::int32_t>(above - trace_.below.begin()) - 1, 0,
                      static_cast<std::int32_t>(trace_.rows.size()) - 1);
}

QPointF TracePlot::pixelOf(const TraceBar& bar) const {
    const auto height = [&](std::int32_t row) {
        return (axes_.bytes ? static_cast<double>(trace_.below[row].count())
                            : static_cast<double>(row)) /
               rowUnit();
    };
    return {xAxis->coordToPixel((acrossOf(bar.begin) + acrossOf(bar.end)) / 2),
            yAxis->coordToPixel((height(bar.row) + height(bar.row + 1)) / 2)};
}

QString TracePlot::describe(const QPointF& pixel) const {
    if (!document_ || !axisRect()->rect().contains(pixel.toPoint())) return {};
    const std::int32_t row = rowAt(pixel.y());
    if (row == core::kNone) return {};
    const core::StorageIndex index = trace_.rows[row];
    const core::TrainingGraph& graph = plan_ ? document_->graphOf(*plan_) : document_->graph;
    const core::Storage& storage = graph.storages[index];
    const std::int32_t times = trace_.computed[row];
    const std::int32_t step = stepAt(pixel.x());
    return tr("storage %1 · %2\n%3\n%4 · %5\n%6: %7")
        .arg(index)
        .arg(categoryText(storage.category), opText(document_->graph, storage.creator),
             document_->size.text(storage.bytes),
             times == 1 ? tr("computed once") : tr("computed %1 times").arg(times),
             axes_.steps ? tr("step %1").arg(step) : document_->time.text(trace_.begin[step]),
             lifetimeText(trace_.barAt(row, step)));
}

QString TracePlot::title() const {
    if (!document_) return {};
    if (!plan_)
        return tr("recorded step · peak %1 · nothing recomputed")
            .arg(document_->size.text(document_->peak()));
    return tr("%1 · budget %2 (%3) · peak %4 · %5 step time · %6 ops recomputed")
        .arg(plan_->planner, document_->size.text(plan_->budget),
             percentText(ratio(plan_->budget, document_->peak())),
             document_->size.text(plan_->peak), overheadText(plan_->overhead))
        .arg(plan_->recomputedOps);
}

void TracePlot::setSelectedOp(core::OpIndex op) {
    selected_ = op;
    replot(rpQueuedReplot);
}

void TracePlot::clicked(const QPointF& pixel) {
    if (document_) emit opClicked(trace_.ops[stepAt(pixel.x())]);
}

}  // namespace hw::viewer

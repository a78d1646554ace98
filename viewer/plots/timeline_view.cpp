// SPDX-License-Identifier: GPL-3.0-or-later
// What is seen of the timeline, and what the pointer does to it.
#include <QMouseEvent>
#include <algorithm>
#include <cmath>
#include <utility>

#include "viewer/plots/timeline_plot.h"

namespace hw::viewer {

bool TimelinePlot::showsWhole() const {
    return visibleTime().upper >= endMilliseconds() * 0.999 && visibleTime().lower <= 0;
}

void TimelinePlot::showTime(const QCPRange& milliseconds) {
    area_->axis(QCPAxis::atBottom)->setRange(milliseconds);
    replot(rpQueuedReplot);
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
    emit visibleTimeChanged();
}

void TimelinePlot::showOp(core::OpIndex op) {
    if (!document_ || op == core::kNone) return;
    for (const LaneSpan& span : document_->lanes.ops) {
        if (span.id != op) continue;
        const double middle = (milliseconds(span.begin) + milliseconds(span.end)) / 2;
        const QCPRange seen = visibleTime();
        if (!seen.contains(middle))
            area_->axis(QCPAxis::atBottom)
                ->setRange(middle - seen.size() / 2, middle + seen.size() / 2);
        showReadout(middle);
        return;
    }
}

void TimelinePlot::showReadout(std::optional<double> at) {
    if (!document_ || !at || *at < 0 || *at > endMilliseconds())
        readout_->show(std::nullopt);
    else
        readout_->show(readoutAt(*document_, curve(), plan_, nanoseconds(*at),
                                 Readout::linesWithin(area_->height())));
}

void TimelinePlot::mouseMoveEvent(QMouseEvent* event) {
    if (measuring_) {
        readout_->show(std::nullopt);
        return setRange(dragged(event->position()));
    }
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

// With Shift a drag chooses a stretch of time instead of moving the view. The right button chooses
// what its menu speaks of.
void TimelinePlot::mousePressEvent(QMouseEvent* event) {
    pressed_ = event->pos();
    if (event->button() == Qt::RightButton) return pickAt(event->position());
    measuring_ = document_ && (event->modifiers() & Qt::ShiftModifier);
    if (!measuring_) QCustomPlot::mousePressEvent(event);
}

std::optional<TimeRange> TimelinePlot::dragged(const QPointF& to) const {
    const QCPAxis* time = area_->axis(QCPAxis::atBottom);
    const double end = milliseconds(document_->curve.time);
    const double a = std::clamp(time->pixelToCoord(pressed_.x()), 0.0, end);
    const double b = std::clamp(time->pixelToCoord(to.x()), 0.0, end);
    if (std::fabs(to.x() - pressed_.x()) <= 3 || a == b) return std::nullopt;
    return TimeRange{nanoseconds(std::min(a, b)), nanoseconds(std::max(a, b))};
}

void TimelinePlot::mouseReleaseEvent(QMouseEvent* event) {
    if (event->button() == Qt::RightButton) return;
    if (std::exchange(measuring_, false)) {
        setRange(dragged(event->position()));
        return emit rangePicked(range_);
    }
    QCustomPlot::mouseReleaseEvent(event);
    if ((event->pos() - pressed_).manhattanLength() <= 3) pickAt(event->position());
}

void TimelinePlot::pickAt(const QPointF& pixel) {
    if (!document_) return;
    const double at = area_->axis(QCPAxis::atBottom)->pixelToCoord(pixel.x());
    if (at < 0 || at > milliseconds(document_->curve.time)) return;
    const Moment& moment = curve().moments[curve().momentAt(nanoseconds(at))];
    if (moment.op != core::kNone) emit opClicked(moment.op);
}

}  // namespace hw::viewer

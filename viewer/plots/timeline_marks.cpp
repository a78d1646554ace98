// SPDX-License-Identifier: GPL-3.0-or-later
// What stands over the timeline's curves: lines, labels, gaps, and what is selected.
#include <algorithm>
#include <utility>

#include "viewer/models/live_set.h"
#include "viewer/models/time_range.h"
#include "viewer/plots/low_plot.h"
#include "viewer/plots/theme.h"
#include "viewer/plots/timeline_plot.h"

namespace hw::viewer {
namespace {
const QString kSeparator = QStringLiteral(" · ");
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
    drawLevel(painter, y, TimelinePlot::tr("budget %1").arg(size), true, theme().text);
}

// The name of a level: right of the curves, or at their right end where the plot is narrow.
void TimelineMarks::drawLevel(QCPPainter* painter, double y, const QString& text, bool bold,
                              const QColor& ink) {
    const QRectF area = timeline_.area_->rect();
    painter->setFont(uiFont(kAxisPixels, bold));
    painter->setPen(ink);
    if (timeline_.width() >= TimelinePlot::kNarrow) {
        painter->drawText(QRectF(area.right() + 8, y - 10, TimelinePlot::kLabelMargin - 8, 20),
                          Qt::AlignVCenter | Qt::AlignLeft, text);
        return;
    }
    const QFontMetricsF metrics(painter->font());
    const QSizeF size(metrics.horizontalAdvance(text) + 6, metrics.height());
    const QRectF box(QPointF(area.right() - size.width(), y - size.height() - 1), size);
    QColor paper = theme().panel;
    paper.setAlphaF(0.8F);
    painter->fillRect(box, paper);
    painter->drawText(box, Qt::AlignCenter, text);
}

// The device's capacity: faint, because it lies above everything else.
void TimelineMarks::drawCapacity(QCPPainter* painter) {
    const Document& document = *timeline_.document_;
    const QRectF area = timeline_.area_->rect();
    const QCPAxis* axis = timeline_.area_->axis(QCPAxis::atLeft);
    const double size = document.size.value(*document.capacity);
    const bool shown = size <= axis->range().upper;
    const double y = shown ? axis->coordToPixel(size) : area.top() + 6;
    QColor ink = theme().alert;
    ink.setAlphaF(0.6F);
    painter->setPen(QPen(ink, 1.2, Qt::DotLine));
    if (shown) painter->drawLine(QPointF(area.left(), y), QPointF(area.right(), y));
    drawLevel(
        painter, y,
        TimelinePlot::tr("%1device %2")
            .arg(shown ? QString() : QStringLiteral("↑ "), document.size.text(*document.capacity)),
        false, theme().muted);
}

// Hatched, never a colour; a gap between two ops is as wide as can be seen.
void TimelineMarks::drawGaps(QCPPainter* painter) {
    constexpr double kLeast = 7, kStripe = 6;
    const QRectF area = timeline_.area_->rect();
    const QCPAxis* time = timeline_.area_->axis(QCPAxis::atBottom);
    painter->setPen(QPen(theme().muted, 1));
    for (const GapSpan& gap : timeline_.document_->gapSpans) {
        const double begin = time->coordToPixel(milliseconds(gap.begin));
        const double end = std::max(begin + kLeast, time->coordToPixel(milliseconds(gap.end)));
        const QRectF box =
            QRectF(QPointF(begin, area.top()), QPointF(end, area.bottom())).intersected(area);
        if (box.isEmpty()) continue;
        painter->drawLine(box.topLeft(), box.bottomLeft());
        painter->drawLine(box.topRight(), box.bottomRight());
        for (double y = box.top(); y + box.width() < box.bottom(); y += kStripe)
            painter->drawLine(QPointF(box.left(), y + box.width()), QPointF(box.right(), y));
    }
}

// In words, over the room of the curve that there is not.
void TimelineMarks::drawNothing(QCPPainter* painter, const QString& why) {
    painter->setFont(uiFont(kAxisPixels));
    painter->setPen(theme().muted);
    painter->drawText(QRectF(timeline_.area_->rect()).adjusted(20, 0, -20, 0),
                      Qt::AlignCenter | Qt::TextWordWrap, why);
}

// Allocations that failed; their words stand low, away from the peak's.
void TimelineMarks::drawMarks(QCPPainter* painter) {
    const QRectF area = timeline_.area_->rect();
    const QCPAxis* time = timeline_.area_->axis(QCPAxis::atBottom);
    const QFontMetricsF metrics(uiFont(kAxisPixels, true));
    double taken = area.left();
    for (const DocumentMark& mark : timeline_.document_->marks) {
        const double x = time->coordToPixel(milliseconds(mark.at));
        if (x < area.left() || x > area.right()) continue;
        painter->setPen(QPen(theme().alert, 1.2, Qt::DashLine));
        painter->drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()));
        const QString text = metrics.elidedText(mark.text, Qt::ElideRight, area.width() - 16);
        const double width = metrics.horizontalAdvance(text) + 16, height = metrics.height() + 7;
        const double left =
            x + 8 + width <= area.right() ? x + 8 : std::max(area.left(), x - 8 - width);
        if (left < taken) continue;
        taken = left + width;
        drawBadge(painter, {left, area.bottom() - height - 6}, text, theme().alert, theme().panel);
    }
}

void TimelineMarks::drawRange(QCPPainter* painter) {
    const QRectF area = timeline_.area_->rect();
    const QCPAxis* time = timeline_.area_->axis(QCPAxis::atBottom);
    const QRectF box =
        QRectF(QPointF(time->coordToPixel(milliseconds(timeline_.range_->begin)), area.top()),
               QPointF(time->coordToPixel(milliseconds(timeline_.range_->end)), area.bottom()))
            .intersected(area);
    QColor fill = theme().text;
    fill.setAlphaF(0.10F);
    painter->setPen(QPen(theme().text, 1));
    painter->setBrush(fill);
    painter->drawRect(box);
    if (box.isEmpty()) return;
    const Document& document = *timeline_.document_;
    const QString text =
        rangeText(document, measure(document, timeline_.curve(), *timeline_.range_));
    const QFontMetricsF metrics(uiFont(kAxisPixels, true));
    const double width = metrics.horizontalAdvance(text) + 16;
    const double left = std::clamp(box.center().x() - width / 2, area.left(),
                                   std::max(area.left(), area.right() - width));
    drawBadge(painter, {left, area.bottom() - metrics.height() - 12}, text, theme().text,
              theme().raised);
}

// When the selected tensor or block is in memory: a bar above the curve, and its shade; of a layer,
// the most that it holds.
void TimelineMarks::drawLife(QCPPainter* painter) {
    const Document& document = *timeline_.document_;
    const Selection& selection = timeline_.selection_;
    const QRectF area = timeline_.area_->rect();
    const QCPAxis* time = timeline_.area_->axis(QCPAxis::atBottom);
    const auto name = [&](const QString& what, core::Bytes size, const QPointF& at) {
        const QString text = (what.isEmpty() ? what : what + kSeparator) + document.size.text(size);
        const double width = QFontMetricsF(uiFont(kAxisPixels, true)).horizontalAdvance(text) + 16;
        const double left =
            std::clamp(at.x(), area.left(), std::max(area.left(), area.right() - width));
        drawBadge(painter, QPointF(left, at.y()), text, theme().text, theme().raised);
    };
    if (selection.kind == Selection::Kind::Layer && !timeline_.held_.empty()) {
        const auto most = std::max_element(timeline_.held_.begin(), timeline_.held_.end());
        if (*most <= core::Bytes(0)) return;
        const Moment& moment =
            document.curve.moments[static_cast<std::size_t>(most - timeline_.held_.begin())];
        const double y =
            timeline_.area_->axis(QCPAxis::atLeft)->coordToPixel(document.size.value(*most));
        name(layerText(document.graph, selection.layer), *most,
             {time->coordToPixel(milliseconds(moment.begin)) + 6, y - 26});
    }
    bool named = false;
    const auto shade = [&](core::Nanoseconds begin, core::Nanoseconds end, const QString& what,
                           core::Bytes size) {
        const QRectF box = QRectF(QPointF(time->coordToPixel(milliseconds(begin)), area.top()),
                                  QPointF(time->coordToPixel(milliseconds(end)), area.bottom()))
                               .intersected(area);
        if (box.isEmpty()) return;
        QColor shadow = theme().text;
        shadow.setAlphaF(0.13F);
        painter->fillRect(box, shadow);
        painter->fillRect(QRectF(box.topLeft(), QSizeF(box.width(), 4)), theme().accent);
        if (!std::exchange(named, true)) name(what, size, {box.left() + 4, area.top() + 34});
    };
    if (const auto& block = selection.block)
        shade(block->begin, block->end, document.bands.placeOf(block->storage), block->bytes);
    if (selection.kind != Selection::Kind::Tensor) return;
    for (const Lifetime& lifetime : document.curve.lifetimes)
        if (lifetime.storage == selection.storage)
            shade(document.curve.moments[static_cast<std::size_t>(lifetime.first)].begin,
                  document.curve.moments[static_cast<std::size_t>(lifetime.last)].end,
                  storageName(document, selection.storage),
                  document.graph.storages[selection.storage].bytes);
}

// In the room above all curves, where the first one is beside it or, on a plot with room, below.
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
    QRectF box(left, area.top(), width, height);
    if (!main && box.intersects(avoid)) {
        if (!isLow(timeline_))
            box.moveTop(area.top() + TimelinePlot::kPeakLabel);
        else if (avoid.right() + 6 + width < area.right())
            box.moveLeft(avoid.right() + 6);
        else
            box.moveRight(std::max(area.left() + width, avoid.left() - 6));
    }
    painter->setPen(QPen(ink, main ? 1.4 : 1, main ? Qt::SolidLine : Qt::DotLine));
    painter->drawLine(QPointF(x, box.top()), QPointF(x, main ? area.bottom() : y));
    if (!main) {
        painter->setPen(QPen(ink, 1));
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
    if (!document.hasMemory()) return drawNothing(painter, document.whyNoMemory());
    drawGaps(painter);
    drawMarks(painter);
    drawLife(painter);
    if (timeline_.range_) drawRange(painter);
    if (document.capacity) drawCapacity(painter);
    if (timeline_.budget_ && document.plannable) drawBudget(painter);
    // Call stacks are long: their inner end tells most.
    const QFontMetricsF metrics(uiFont(kAxisPixels, true));
    const double room = timeline_.area_->rect().width();
    const bool low = isLow(timeline_);  // the layer alone, and of the plan's peak its size
    const auto named = [&](const QString& text, core::Bytes peak, const StepCurve& curve) {
        const QString figure = text.arg(document.size.text(peak));
        QString place = placeOf(document.graph, curve.moments[curve.peakMoment].op);
        if (low) place = &curve == &document.curve ? place.section(kSeparator, -1) : QString();
        const double most =
            std::min(room * (low ? 0.3 : 0.45), room - metrics.horizontalAdvance(figure) - 50);
        return place.isEmpty()
                   ? figure
                   : figure + kSeparator + metrics.elidedText(place, Qt::ElideLeft, most);
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

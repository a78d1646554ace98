// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <cmath>

#include "viewer/plots/theme.h"
#include "viewer/plots/trace_plot.h"

namespace hw::viewer {
namespace {

constexpr double kTitle = 8, kPhases = 34, kPhaseHeight = 18, kSteps = 54, kStepHeight = 8;
constexpr double kShortest = 2;   // pixels of a phase that is worth a mark
constexpr double kSeparated = 4;  // pixels from which on rows stand apart

// Nothing that is in memory fades away: a quarter of a pixel keeps well over a quarter of the ink,
// and half of it decides the colour.
QColor inkOf(const TraceMark& mark) {
    const double share = std::min(1.0, 2.0 * mark.rematerialized / TraceMark::kWhole);
    const QColor ink = core::traitsOf(mark.by).standsIn
                           ? theme().lifetime(mark.by)
                           : blend(theme().lifetime(core::ActionKind::Compute),
                                   theme().lifetime(core::ActionKind::Recompute), share);
    return blend(theme().panel, ink,
                 0.3 + 0.7 * mark.cover / static_cast<double>(TraceMark::kWhole));
}

}  // namespace

TraceLayer::TraceLayer(TracePlot* plot, Part part)
    : QCPLayerable(plot, part == Part::Bars ? QStringLiteral("main") : QStringLiteral("legend")),
      plot_(*plot),
      part_(part) {}

void TraceLayer::applyDefaultAntialiasingHint(QCPPainter* painter) const {
    painter->setAntialiasing(part_ == Part::Marks);
}

void TraceLayer::draw(QCPPainter* painter) {
    if (!plot_.document_ || plot_.trace_.steps() == 0) return;
    if (part_ == Part::Bars) return drawBars(painter);
    drawPhases(painter);
    drawRecomputedSteps(painter);
    drawSelection(painter);
    drawPeak(painter);
    drawTitle(painter);
}

// Without antialiasing, which would leave seams between rows that touch.
void TraceLayer::drawBars(QCPPainter* painter) {
    painter->setAntialiasing(false);
    const QRectF area = plot_.axisRect()->rect();
    const bool vectors = painter->modes().testFlag(QCPPainter::pmVectorized);
    for (const TraceMark& mark : visibleMarks(plot_.trace_, plot_.view())) {
        const double height = mark.high - mark.low;
        const double gap = height >= kSeparated ? std::min(2.0, height * 0.2) : 0;
        // Viewers of vector files antialias whatever they are told: rows overlap a little there.
        const double lap = vectors && gap == 0 ? 0.15 : 0;
        painter->fillRect(
            QRectF(area.left() + mark.left, area.bottom() + 1 - mark.high + gap / 2 - lap,
                   mark.right - mark.left, height - gap + lap),
            inkOf(mark));
    }
}

void TraceLayer::drawTitle(QCPPainter* painter) {
    const QRectF area = plot_.axisRect()->rect();
    const QRectF line(area.left(), kTitle, area.width(), 20);
    const double taken = drawPlotTitle(painter, line, plot_.title());
    const TraceView view = plot_.view();
    const double rows = (view.high - view.low) / view.height;
    if (view.axes.bytes || rows <= 1) return;
    const QString note =
        TracePlot::tr("%1 storages a pixel, paler where fewer are there").arg(rows, 0, 'f', 1);
    if (taken + QFontMetricsF(painter->font()).horizontalAdvance(note) + 20 >= line.width()) return;
    painter->setFont(uiFont(kAxisPixels));
    painter->drawText(line, Qt::AlignVCenter | Qt::AlignRight, note);
}

void TraceLayer::drawPhases(QCPPainter* painter) {
    const PlanTrace& trace = plot_.trace_;
    const QRectF area = plot_.axisRect()->rect();
    std::vector<PhaseStart> starts{{0, core::Phase::Forward}};
    if (!trace.phasesGuessed)
        for (std::int32_t step = 0; step < trace.steps(); ++step) {
            const core::Phase phase = plot_.document_->graph.ops[trace.ops[step]].phase;
            if (phase == core::Phase::Unknown) continue;
            starts.front().phase = phase;
            break;
        }
    starts.insert(starts.end(), trace.phases.begin(), trace.phases.end());
    painter->setFont(uiFont(kAxisPixels));
    const QFontMetricsF metrics(painter->font());
    for (std::size_t i = 0; i < starts.size(); ++i) {
        const std::int32_t end = i + 1 < starts.size() ? starts[i + 1].step : trace.steps();
        const double from = plot_.xAxis->coordToPixel(plot_.acrossOf(starts[i].step));
        const double left = std::max(from, area.left());
        const double right =
            std::min(plot_.xAxis->coordToPixel(plot_.acrossOf(end)), area.right() + 1);
        if (right - left < kShortest) continue;
        const QRectF box(left, kPhases, right - left - (right - left > 4 ? 1 : 0), kPhaseHeight);
        painter->fillRect(box, theme().phase(starts[i].phase));
        if (i > 0 && from > area.left() + kShortest) {
            painter->setPen(QPen(theme().text, 1, Qt::DotLine));
            painter->drawLine(QPointF(left, area.top()), QPointF(left, area.bottom()));
        }
        const QString name = toQString(core::phaseName(starts[i].phase));
        const QString longer =
            trace.phasesGuessed ? TracePlot::tr("%1 (by the ops' names)").arg(name) : name;
        const QString& text = metrics.horizontalAdvance(longer) + 12 < box.width() ? longer : name;
        if (metrics.horizontalAdvance(text) + 8 > box.width()) continue;
        painter->setPen(theme().text);
        painter->drawText(box.adjusted(6, 0, -2, 0), Qt::AlignVCenter, text);
    }
}

// One run a stretch of recomputation; runs closer than a pixel are one.
void TraceLayer::drawRecomputedSteps(QCPPainter* painter) {
    const PlanTrace& trace = plot_.trace_;
    const QRectF area = plot_.axisRect()->rect();
    const QRectF strip(area.left(), kSteps, area.width(), kStepHeight);
    painter->fillRect(strip, theme().grid);
    painter->setFont(uiFont(kAxisPixels));
    painter->setPen(theme().muted);
    painter->drawText(QRectF(0, kPhases, area.left() - 6, kPhaseHeight),
                      Qt::AlignVCenter | Qt::AlignRight, TracePlot::tr("phase"));
    painter->drawText(QRectF(0, kSteps - 4, area.left() - 6, kStepHeight + 8),
                      Qt::AlignVCenter | Qt::AlignRight, TracePlot::tr("recomputing"));
    const QColor ink = theme().lifetime(core::ActionKind::Recompute);
    double from = 0, to = -1;
    const auto flush = [&] {
        if (to > from) painter->fillRect(QRectF(from, strip.top(), to - from, strip.height()), ink);
        to = -1;
    };
    for (std::int32_t step = 0; step < trace.steps(); ++step) {
        if (!trace.recomputed[step]) continue;
        const double left = std::max(plot_.xAxis->coordToPixel(plot_.acrossOf(step)), area.left());
        const double right =
            std::min(std::max(plot_.xAxis->coordToPixel(plot_.acrossOf(step + 1)), left + 0.5),
                     area.right() + 1);
        if (right <= left) continue;
        if (to >= from && left - to < 0.25) {
            to = std::max(to, right);
            continue;
        }
        flush();
        from = left, to = right;
    }
    flush();
}

void TraceLayer::drawSelection(QCPPainter* painter) {
    if (plot_.selected_ == core::kNone) return;
    const PlanTrace& trace = plot_.trace_;
    const QRectF area = plot_.axisRect()->rect();
    painter->setPen(QPen(theme().accent, 1.4));
    for (std::int32_t step = 0; step < trace.steps(); ++step) {
        if (trace.ops[step] != plot_.selected_) continue;
        const double x = plot_.xAxis->coordToPixel(plot_.acrossOf(step));
        if (x >= area.left() && x <= area.right())
            painter->drawLine(QPointF(x, kSteps), QPointF(x, area.bottom()));
    }
}

// To the left of its line, where rows that come later are still blank.
void TraceLayer::drawPeak(QCPPainter* painter) {
    const PlanTrace& trace = plot_.trace_;
    const Document& document = *plot_.document_;
    const QRectF area = plot_.axisRect()->rect();
    const double x = plot_.xAxis->coordToPixel(plot_.acrossOf(trace.peakStep));
    if (x < area.left() || x > area.right()) return;
    const QString text =
        TracePlot::tr("peak %1 · %2")
            .arg(document.size.text(plot_.plan_ ? plot_.plan_->peak : document.peak()),
                 placeOf(document.graph, trace.ops[trace.peakStep]));
    const QFontMetricsF metrics(uiFont(kAxisPixels, true));
    const double width = metrics.horizontalAdvance(text) + 16, height = metrics.height() + 7;
    const double left = x - 6 - width > area.left() ? x - 6 - width : x + 6;
    painter->setPen(QPen(theme().alert, 1.4));
    painter->drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()));
    const QRectF box(left, area.top() + 8, width, height);
    painter->setPen(Qt::NoPen);
    painter->setBrush(theme().panel);
    painter->drawRoundedRect(box, 3, 3);
    QColor paper = theme().alert;
    paper.setAlphaF(theme().light ? 0.14F : 0.22F);
    drawBadge(painter, box.topLeft(), text, theme().alert, paper);
}

}  // namespace hw::viewer

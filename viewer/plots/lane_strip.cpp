// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/plots/lane_strip.h"

#include <algorithm>

#include "viewer/plots/colours.h"
#include "viewer/plots/theme.h"

namespace hw::viewer {
namespace {
constexpr double kGap = 2;         // pixels between lanes
constexpr double kLabelRoom = 26;  // pixels below which a span carries no text
constexpr int kLeastPhase = 4;     // of a phase: there are three
constexpr int kLeastText = 7;  // characters of what is cut, "…" among them: fewer tell nothing
}  // namespace

LaneStrip::LaneStrip(QCPAxis* time, QCPAxis* lane) : QCPAbstractPlottable(time, lane) {
    setSelectable(QCP::stNone);
}

void LaneStrip::setDocument(DocumentPointer document) {
    document_ = std::move(document);
    count_ = static_cast<int>(lanesOf(document_.get()).size());
    selected_ = core::kNone;
}

QStringList LaneStrip::lanesOf(const Document* document) {
    QStringList names{tr("phase"), tr("layer"), tr("op")};
    if (document && !document->lanes.annotations.spans.empty()) names << tr("annotation");
    if (document)
        for (const StreamLane& lane : document->lanes.streams)
            names << tr("stream %1").arg(lane.stream);
    return names;
}

QCPRange LaneStrip::getKeyRange(bool& found, QCP::SignDomain) const {
    found = document_ != nullptr;
    return {0, document_ ? milliseconds(document_->judged.time) : 1};
}
QCPRange LaneStrip::getValueRange(bool& found, QCP::SignDomain, const QCPRange&) const {
    found = true;
    return {0, static_cast<double>(count_)};
}

QRectF LaneStrip::laneRect(int lane) const {
    const QRect area = mKeyAxis->axisRect()->rect();
    const double height = static_cast<double>(area.height()) / count_;
    return {static_cast<double>(area.left()), area.top() + lane * height + kGap / 2,
            static_cast<double>(area.width()), height - kGap};
}

// Spans thinner than a pixel share a column, which takes the colour of the longest of them.
template <class Colour, class Label>
void LaneStrip::drawLane(QCPPainter* painter, int lane, const std::vector<LaneSpan>& spans,
                         Colour colour, Label label) {
    const QRectF area = laneRect(lane);
    const QFontMetricsF metrics(painter->font());
    double column = -1, columnLongest = 0;
    QColor columnColour;
    const auto flush = [&] {
        if (column < 0) return;
        painter->fillRect(QRectF(column, area.top(), 1, area.height()), columnColour);
        column = -1;
    };
    for (const LaneSpan& span : spans) {
        const double left = std::max(mKeyAxis->coordToPixel(milliseconds(span.begin)), area.left());
        const double right = std::min(mKeyAxis->coordToPixel(milliseconds(span.end)), area.right());
        if (right <= area.left() || left >= area.right() || right <= left) continue;
        if (right - left < 1.5) {
            if (std::floor(left) != column) {
                flush();
                column = std::floor(left);
                columnLongest = 0;
            }
            if (right - left > columnLongest)
                columnLongest = right - left, columnColour = colour(span);
            continue;
        }
        flush();
        const double seam = right - left > 4 ? 1 : 0;
        const QRectF box(left, area.top(), right - left - seam, area.height());
        painter->fillRect(box, colour(span));
        if (box.width() < kLabelRoom) continue;
        const QString text = label(span);
        if (text.isEmpty()) continue;
        // The end of a path tells layers apart.
        const bool cut = metrics.horizontalAdvance(text) > box.width() - 8;
        const QString tail = text.section(QLatin1Char('.'), -1);
        if (cut && lane == 1 && metrics.horizontalAdvance(tail) <= box.width() - 8) {
            painter->setPen(theme().text);
            painter->drawText(box.adjusted(4, 0, -4, 0), Qt::AlignVCenter | Qt::AlignLeft, tail);
            continue;
        }
        QString elided =
            metrics.elidedText(text, lane == 1 ? Qt::ElideLeft : Qt::ElideRight, box.width() - 8);
        if (elided.startsWith(QStringLiteral("…."))) elided.remove(1, 1);
        if (elided.size() < (lane == 0 ? kLeastPhase : kLeastText) && elided != text) continue;
        painter->setPen(theme().text);
        painter->drawText(box.adjusted(4, 0, -4, 0), Qt::AlignVCenter | Qt::AlignLeft, elided);
    }
    flush();
}

void LaneStrip::drawHatched(QCPPainter* painter, int lane, const QString& text) {
    const QRectF area = laneRect(lane);
    const double right = mKeyAxis->coordToPixel(milliseconds(document_->judged.time));
    const double left = std::max(area.left(), mKeyAxis->coordToPixel(0));
    const QRectF box(left, area.top(), std::min(right, area.right()) - left, area.height());
    if (box.width() <= 0) return;
    painter->setPen(QPen(theme().line, 1));
    for (double x = box.left() - box.height(); x < box.right(); x += 6) {
        const double from = std::max(x, box.left()), to = std::min(x + box.height(), box.right());
        if (to <= from) continue;
        painter->drawLine(QPointF(from, box.bottom() - (from - x)),
                          QPointF(to, box.bottom() - (to - x)));
    }
    const QFontMetricsF metrics(painter->font());
    const QRectF label(box.left() + 6, box.top(), metrics.horizontalAdvance(text) + 10,
                       box.height());
    if (label.right() > box.right()) return;
    painter->fillRect(label, theme().panel);
    painter->setPen(theme().muted);
    painter->drawText(label, Qt::AlignCenter, text);
}

void LaneStrip::draw(QCPPainter* painter) {
    if (!document_) return;
    painter->setFont(uiFont(kAxisPixels));
    painter->setAntialiasing(false);
    const core::TrainingGraph& graph = document_->graph;
    const Lanes& lanes = document_->lanes;
    const auto none = [](const std::vector<LaneSpan>& spans) {
        return std::all_of(spans.begin(), spans.end(),
                           [](const LaneSpan& span) { return span.id == core::kNone; });
    };
    if (none(lanes.phases))
        drawHatched(painter, 0, tr("phases were not recorded"));
    else
        drawLane(
            painter, 0, lanes.phases,
            [](const LaneSpan& span) { return theme().phase(span.phase); },
            [](const LaneSpan& span) { return toQString(core::phaseName(span.phase)); });
    if (none(lanes.layers))
        drawHatched(painter, 1, tr("layers were not recorded"));
    else
        drawLane(
            painter, 1, lanes.layers,
            [](const LaneSpan& span) {
                if (span.id == core::kNone) return theme().grid;
                const QColor base = theme().phase(span.phase);
                return span.id % 2 ? base : (theme().light ? base.darker(108) : base.lighter(122));
            },
            [&](const LaneSpan& span) { return layerText(graph, span.id); });
    if (none(lanes.ops))
        drawHatched(painter, 2, tr("ops were not recorded"));
    else
        drawLane(
            painter, 2, lanes.ops,
            [&](const LaneSpan& span) { return theme().family(opFamily(graph.ops[span.id].name)); },
            [&](const LaneSpan& span) { return shortOpName(graph.ops[span.id].name); });
    int lane = 3;
    if (!lanes.annotations.spans.empty())
        drawLane(
            painter, lane++, lanes.annotations.spans,
            [](const LaneSpan& span) {
                return span.id % 2 ? theme().grid : blend(theme().grid, theme().accent, 0.25);
            },
            [&](const LaneSpan& span) { return toQString(lanes.annotations.names[span.id]); });
    for (std::size_t i = 0; i < lanes.streams.size(); ++i)
        drawLane(
            painter, lane + static_cast<int>(i), lanes.streams[i].spans,
            [&](const LaneSpan& span) { return theme().family(opFamily(lanes.work[span.id])); },
            [&](const LaneSpan& span) { return shortKernelName(lanes.work[span.id]); });
    drawSelection(painter);
}

void LaneStrip::drawSelection(QCPPainter* painter) {
    if (selected_ == core::kNone) return;
    const auto found = std::find_if(document_->lanes.ops.begin(), document_->lanes.ops.end(),
                                    [this](const LaneSpan& span) { return span.id == selected_; });
    if (found == document_->lanes.ops.end()) return;
    const QRectF area = laneRect(2);
    const double left = std::max(mKeyAxis->coordToPixel(milliseconds(found->begin)), area.left());
    const double right = std::min(
        std::max(mKeyAxis->coordToPixel(milliseconds(found->end)), left + 2), area.right());
    if (right < left) return;
    painter->setPen(QPen(theme().accent, 2));
    painter->setBrush(Qt::NoBrush);
    painter->drawRect(QRectF(left, area.top(), right - left, area.height()));
}

}  // namespace hw::viewer

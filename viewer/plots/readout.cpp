// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/plots/readout.h"

#include <algorithm>
#include <limits>

#include "viewer/plots/theme.h"

namespace hw::viewer {
namespace {

QString storageText(const Document& document, core::StorageIndex index) {
    const core::TrainingGraph& graph = document.graph;
    const core::Storage& storage = graph.storages[index];
    const QString kind = document.kindOf(index);
    if (!storage.isConstant()) return kind + QStringLiteral(" · ") + opText(graph, storage.creator);
    const QString layer = layerText(graph, storage.layer);
    return layer.isEmpty() || document.bands.byLine() ? kind : kind + QStringLiteral(" · ") + layer;
}

// The largest first.
void listBands(const Document& document, const Moment& moment, std::size_t lines,
               ReadoutContent& content) {
    std::vector<Band> held;
    for (Band band = 0; band < kBandCount; ++band)
        if (moment.byBand[band] > core::Bytes(0)) held.push_back(band);
    std::stable_sort(held.begin(), held.end(),
                     [&](Band a, Band b) { return moment.byBand[a] > moment.byBand[b]; });
    held.resize(std::min(held.size(), lines));
    for (const Band band : held)
        content.lines.push_back({theme().band(document.bands, band), document.bands.name(band),
                                 document.size.text(moment.byBand[band])});
}

}  // namespace

ReadoutContent readoutAt(const Document& document, const StepCurve& recorded,
                         const PlanPointer& plan, core::Nanoseconds time, std::size_t lines) {
    ReadoutContent content;
    content.milliseconds = milliseconds(time);
    const core::TrainingGraph& graph = document.graph;
    if (recorded.moments.empty()) return content;
    // After the end of the recorded step only the plan still runs.
    const bool inPlan = plan && time > document.curve.time;
    const StepCurve& curve = inPlan ? plan->curve : recorded;
    const std::size_t at = curve.momentAt(time);
    const Moment& moment = curve.moments[at];
    content.title = document.time.text(time);
    if (moment.op != core::kNone) content.title += QStringLiteral(" · ") + opText(graph, moment.op);
    content.subtitle =
        inPlan ? QString() : QObject::tr("recorded %1").arg(document.size.text(moment.total));
    if (plan && !plan->curve.moments.empty()) {
        const Moment& planned = plan->curve.moments[plan->curve.momentAt(time)];
        if (!content.subtitle.isEmpty()) content.subtitle += QStringLiteral(" · ");
        content.subtitle +=
            QObject::tr("plan %1%2")
                .arg(document.size.text(planned.total),
                     planned.recomputed ? QObject::tr(" (recomputing)") : QString());
    }
    if (document.knowsPeakOnly()) {
        listBands(document, moment, lines, content);
        return content;
    }
    const std::vector<core::StorageIndex> live =
        largestResident(graph, curve, at, std::numeric_limits<std::size_t>::max());
    core::Bytes rest;
    const core::Bytes workspace = document.bands.of(moment.byBand, core::Category::Workspace);
    if (workspace > core::Bytes(0))
        content.lines.push_back({theme().category(core::Category::Workspace),
                                 QObject::tr("workspace of this op"),
                                 document.size.text(workspace)});
    for (std::size_t i = 0; i < live.size(); ++i) {
        const core::Storage& storage = graph.storages[live[i]];
        if (i < lines)
            content.lines.push_back({theme().band(document.bands, document.bands.of(storage)),
                                     storageText(document, live[i]),
                                     document.size.text(storage.bytes)});
        else
            rest += storage.bytes;
    }
    if (live.size() > lines)
        content.rest =
            QObject::tr("and %1 more, %2").arg(live.size() - lines).arg(document.size.text(rest));
    return content;
}

std::size_t Readout::linesWithin(int height) {
    const int row = QFontMetrics(uiFont(kAxisPixels)).height() + 4;
    constexpr int kAround = 34, kOthers = 3, kMost = 7;  // title, subtitle, the rest
    return static_cast<std::size_t>(std::clamp((height - kAround) / row - kOthers, 1, kMost));
}

Readout::Readout(QCustomPlot* plot, QCPAxis* time)
    : QCPLayerable(plot, QStringLiteral("overlay")), time_(time) {}

void Readout::applyDefaultAntialiasingHint(QCPPainter* painter) const {
    painter->setAntialiasing(true);
}

void Readout::draw(QCPPainter* painter) {
    if (!content_) return;
    const QRectF area = time_->axisRect()->rect();
    const double x = time_->coordToPixel(content_->milliseconds);
    if (x < area.left() || x > area.right()) return;
    painter->setPen(QPen(theme().muted, 1));
    painter->drawLine(QPointF(x, area.top()), QPointF(x, mParentPlot->height() - 6));

    constexpr double kPad = 10, kSwatch = 9;
    const QFont plain = uiFont(kAxisPixels), bold = uiFont(kAxisPixels, true);
    const QFontMetricsF metrics(plain);
    const double row = metrics.height() + 4;
    const double width = std::min(370.0, area.width() * 0.48);
    const auto textRows =
        static_cast<double>(content_->lines.size()) + 2 + !content_->rest.isEmpty();
    const QSizeF size(width, textRows * row + 2 * kPad + 4);
    // On the side with more room, so that the box never hides the curve under the cursor.
    const bool right = x - area.left() < area.width() / 2;
    QRectF box(QPointF(right ? x + 12 : x - 12 - width, area.top() + 6), size);
    painter->setPen(QPen(theme().line, 1));
    QColor paper = theme().raised;
    paper.setAlphaF(0.96F);
    painter->setBrush(paper);
    painter->drawRoundedRect(box, 4, 4);

    QRectF line(box.left() + kPad, box.top() + kPad, width - 2 * kPad, row);
    painter->setFont(bold);
    painter->setPen(theme().text);
    painter->drawText(
        line, Qt::AlignVCenter,
        QFontMetricsF(bold).elidedText(content_->title, Qt::ElideRight, line.width()));
    painter->setFont(plain);
    line.translate(0, row);
    painter->setPen(theme().muted);
    painter->drawText(line, Qt::AlignVCenter, content_->subtitle);
    line.translate(0, row + 4);
    for (const ReadoutContent::Line& item : content_->lines) {
        painter->setPen(Qt::NoPen);
        painter->setBrush(item.colour);
        painter->drawRect(QRectF(line.left(), line.center().y() - kSwatch / 2, kSwatch, kSwatch));
        painter->setPen(theme().text);
        painter->drawText(line, Qt::AlignVCenter | Qt::AlignRight, item.size);
        const double room = line.width() - kSwatch - 18 - metrics.horizontalAdvance(item.size);
        painter->drawText(line.adjusted(kSwatch + 7, 0, 0, 0), Qt::AlignVCenter,
                          metrics.elidedText(item.name, Qt::ElideMiddle, room));
        line.translate(0, row);
    }
    painter->setPen(theme().muted);
    painter->drawText(line, Qt::AlignVCenter, content_->rest);
}

}  // namespace hw::viewer

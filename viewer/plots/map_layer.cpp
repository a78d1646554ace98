// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <array>

#include "viewer/models/live_set.h"
#include "viewer/plots/colours.h"
#include "viewer/plots/map_plot.h"
#include "viewer/plots/theme.h"

namespace hw::viewer {
namespace {
constexpr double kNamedFrom = 46;  // pixels from which on a block can have a name

QColor fillOf(const QColor& colour) {
    return blend(theme().panel, colour, 0.9);
}

}  // namespace

MapLayer::MapLayer(MapPlot* plot, Part part)
    : QCPLayerable(plot, part == Part::Blocks ? QStringLiteral("main") : QStringLiteral("legend")),
      plot_(*plot),
      part_(part) {}

void MapLayer::applyDefaultAntialiasingHint(QCPPainter* painter) const {
    painter->setAntialiasing(part_ == Part::Marks);
}

void MapLayer::draw(QCPPainter* painter) {
    if (!plot_.map_) {
        if (part_ == Part::Marks && !plot_.note_.isEmpty()) {
            painter->setFont(uiFont(kBasePixels));
            painter->setPen(theme().muted);
            painter->drawText(QRectF(plot_.rect()).adjusted(60, 0, -60, 0),
                              Qt::AlignCenter | Qt::TextWordWrap, plot_.note_);
        }
        return;
    }
    if (part_ == Part::Blocks) return drawBlocks(painter);
    drawSeams(painter);
    drawSelection(painter);
    drawPeak(painter);
    drawTitle(painter);
}

// Only what is seen, one call a colour. Blocks smaller than a pixel share it: the first one paints
// it, so that the work is bounded by the picture and no block is lost.
void MapLayer::drawBlocks(QCPPainter* painter) {
    painter->setAntialiasing(false);
    const QRectF area = plot_.axisRect()->rect();
    const bool vectors = painter->modes().testFlag(QCPPainter::pmVectorized);
    const auto width = static_cast<std::size_t>(area.width()) + 2;
    std::vector<bool> taken(width * static_cast<std::size_t>(area.height() + 2));
    std::array<QVector<QRectF>, MapPlot::kSlots> batches;
    named_.clear();
    plot_.painted_ = 0;
    const MapPlot::Scale scale = plot_.scale();
    for (const MapBlock& block : plot_.map_->blocks) {
        const double left = scale.x(block.first);
        if (left > area.right()) break;  // by first
        const double right = scale.x(block.end);
        const double top = scale.y(block.offset + block.bytes), bottom = scale.y(block.offset);
        if (right < area.left() || bottom < area.top() || top > area.bottom()) continue;
        QRectF box = QRectF(QPointF(left, top), QPointF(right, bottom)).intersected(area);
        if (box.width() < 1 && box.height() < 1) {
            const auto x = static_cast<std::size_t>(std::max(0.0, box.left() - area.left()));
            const auto y = static_cast<std::size_t>(std::max(0.0, box.top() - area.top()));
            const std::size_t pixel = y * width + x;
            if (pixel >= taken.size() || taken[pixel]) continue;
            taken[pixel] = true;
        }
        if (box.width() >= kNamedFrom && box.height() >= kAxisPixels)
            named_.emplace_back(&block, box);
        // A seam where there is room for one, a pixel where there is less.
        box.setWidth(std::max(1.0, box.width() - (box.width() > 4 ? 1 : 0)));
        box.setTop(box.top() + (box.height() > 5 ? 1 : 0));
        box.setHeight(std::max(vectors ? 0.4 : 1.0, box.height()));
        batches[plot_.slotOf(block)].push_back(box);
        ++plot_.painted_;
    }
    painter->setPen(Qt::NoPen);
    QVector<QRect> pixels;
    for (std::size_t slot = 0; slot < batches.size(); ++slot) {
        if (batches[slot].isEmpty()) continue;
        painter->setBrush(fillOf(plot_.colourOf(slot)));
        if (vectors) {
            painter->drawRects(batches[slot]);
            continue;
        }
        pixels.clear();  // whole pixels are painted many times faster
        for (const QRectF& box : batches[slot])
            pixels.push_back(
                QRect(static_cast<int>(box.left()), static_cast<int>(box.top()),
                      std::max(1, static_cast<int>(box.right()) - static_cast<int>(box.left())),
                      std::max(1, static_cast<int>(box.bottom()) - static_cast<int>(box.top()))));
        painter->drawRects(pixels);
    }
    drawNames(painter);
}

void MapLayer::drawNames(QCPPainter* painter) {
    painter->setFont(uiFont(kAxisPixels));
    const QFontMetricsF metrics(painter->font());
    const core::TrainingGraph& graph = plot_.document_->graph;
    for (const auto& [block, whole] : named_) {
        const QRectF box = whole.adjusted(5, 1, -5, -1);
        if (box.height() < metrics.height()) continue;
        QString name = plot_.nameOf(*block);
        if (name.isEmpty() && block->op != core::kNone)
            name = shortOpName(graph.ops[block->op].name);
        const QString size = plot_.document_->size.text(core::Bytes(block->bytes));
        QString text = name.isEmpty() ? size : name + QStringLiteral(" · ") + size;
        const QString layer = block->storage == core::kNone || plot_.document_->bands.byLine()
                                  ? QString()
                                  : layerText(graph, graph.storages[block->storage].layer);
        if (const QString longer = text + QStringLiteral(" · ") + layer;
            !layer.isEmpty() && metrics.horizontalAdvance(longer) <= box.width())
            text = longer;
        if (metrics.horizontalAdvance(text) > box.width()) text = name;
        if (metrics.horizontalAdvance(text) > box.width()) continue;
        painter->setPen(inkOn(fillOf(plot_.colourOf(plot_.slotOf(*block)))));
        painter->drawText(box, Qt::AlignVCenter | Qt::AlignLeft, text);
    }
}

void MapLayer::drawSeams(QCPPainter* painter) {
    const QRectF area = plot_.axisRect()->rect();
    QColor ink = theme().muted;
    ink.setAlphaF(plot_.map_->seams.size() > 12 ? 0.3F : 0.8F);
    painter->setPen(QPen(ink, 1, Qt::DotLine));
    for (const std::int64_t seam : plot_.map_->seams) {
        const double y =
            plot_.yAxis->coordToPixel(static_cast<double>(seam) / plot_.document_->size.bytes);
        if (y > area.top() && y < area.bottom())
            painter->drawLine(QPointF(area.left(), y), QPointF(area.right(), y));
    }
}

void MapLayer::drawPeak(QCPPainter* painter) {
    const QRectF area = plot_.axisRect()->rect();
    const double x = plot_.xAxis->coordToPixel(plot_.acrossOf(plot_.map_->peakMoment));
    if (x < area.left() || x > area.right()) return;
    painter->setPen(QPen(theme().alert, 1.4));
    painter->drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()));
    const QString text =
        MapPlot::tr("most live %1").arg(plot_.document_->size.text(plot_.map_->livePeak));
    const QFontMetricsF metrics(uiFont(kAxisPixels, true));
    const double width = metrics.horizontalAdvance(text) + 16;
    const double left = x + 6 + width < area.right() ? x + 6 : x - 6 - width;
    const QRectF box(left, area.top() + 8, width, metrics.height() + 7);
    painter->setPen(Qt::NoPen);
    painter->setBrush(theme().panel);
    painter->drawRoundedRect(box, 3, 3);
    QColor paper = theme().alert;
    paper.setAlphaF(theme().light ? 0.14F : 0.22F);
    drawBadge(painter, box.topLeft(), text, theme().alert, paper);
}

void MapLayer::drawSelection(QCPPainter* painter) {
    const QRectF area = plot_.axisRect()->rect();
    const QColor ink = theme().light ? QColor("#000000") : QColor("#ffffff");
    painter->setBrush(Qt::NoBrush);
    painter->setPen(QPen(ink, 1.6));
    for (const MapBlock& block : plot_.map_->blocks) {
        if (!plot_.isSelected(block)) continue;  // few are left
        const QRectF box = plot_.pixelsOf(block).intersected(area);
        if (!box.isEmpty()) painter->drawRect(box.adjusted(-1, -1, 1, 1));
    }
}

void MapLayer::drawTitle(QCPPainter* painter) {
    const QRectF area = plot_.axisRect()->rect();
    drawPlotTitle(painter, QRectF(area.left(), 12, area.width(), 22), plot_.title());
}

}  // namespace hw::viewer

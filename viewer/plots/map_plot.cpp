// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/plots/map_plot.h"

#include <QMouseEvent>
#include <QToolTip>
#include <algorithm>
#include <array>

#include "viewer/models/live_set.h"
#include "viewer/plots/axis_ticker.h"
#include "viewer/plots/theme.h"

namespace hw::viewer {
namespace {
constexpr int kLeft = 86, kRight = 24, kTop = 44, kBottom = 46;
constexpr double kNamed = 46;  // pixels from which on a block can have a name
}  // namespace

MapPlot::MapPlot(QWidget* parent) : Plot(parent) {
    axisRect()->setAutoMargins(QCP::msNone);
    axisRect()->setMargins(QMargins(kLeft, kTop, kRight, kBottom));
    setInteractions(QCP::iRangeDrag | QCP::iRangeZoom);
    axisRect()->setRangeDrag(Qt::Horizontal | Qt::Vertical);
    axisRect()->setRangeZoom(Qt::Horizontal | Qt::Vertical);
    new MapLayer(this, MapLayer::Part::Blocks);
    new MapLayer(this, MapLayer::Part::Marks);
    for (QCPAxis* axis : {xAxis, yAxis})
        connect(axis, qOverload<const QCPRange&>(&QCPAxis::rangeChanged), this,
                [this, axis](const QCPRange& wanted) { clamp(axis, wanted); });
    setMouseTracking(true);
    setMinimumSize(360, 220);
    applyTheme();
}

void MapPlot::applyTheme() {
    Plot::applyTheme();
    xAxis->grid()->setVisible(false);
    replot(rpQueuedReplot);
}

void MapPlot::show(const DocumentPointer& document, const PlanPointer& plan,
                   std::shared_ptr<const AddressMap> map) {
    document_ = document;
    plan_ = plan;
    map_ = map && !map->blocks.empty() ? std::move(map) : nullptr;
    note_.clear();
    families_.clear();
    for (const core::Op& op : document_->graph.ops)
        families_.push_back(static_cast<std::uint8_t>(opFamily(op.name)));
    setBySteps(steps_);
}

void MapPlot::setNote(const QString& note) {
    note_ = note;
    map_ = nullptr;
    setBySteps(steps_);
}

void MapPlot::setBySteps(bool steps) {
    steps_ = steps;
    for (QCPAxis* axis : {xAxis, yAxis}) {
        axis->setVisible(map_ != nullptr);
        axis->grid()->setVisible(map_ != nullptr && axis == yAxis);
    }
    if (map_) {
        const bool events = document_->time.unit.size() > 3;
        xAxis->setTicker(QSharedPointer<UnitTicker>::create(
            steps ? QString() : document_->time.unit, events ? 4 : 7));
        yAxis->setTicker(QSharedPointer<UnitTicker>::create(document_->size.name, 6));
        xAxis->setLabel(steps            ? tr("step of the schedule")
                        : map_->recorded ? tr("time")
                                         : tr("time of the schedule"));
        yAxis->setLabel(map_->recorded ? tr("address, unused stretches left out")
                                       : tr("address in the arena"));
    }
    resetZoom();
}

double MapPlot::acrossOf(std::int32_t moment) const {
    if (steps_) return moment;
    const std::vector<Moment>& moments = curve().moments;
    return moment < static_cast<std::int32_t>(moments.size())
               ? milliseconds(moments[static_cast<std::size_t>(std::max(0, moment))].begin)
               : milliseconds(curve().time);
}

QCPRange MapPlot::whole(const QCPAxis* axis) const {
    if (!map_) return {0, 1};
    if (axis == yAxis) return {0, std::max(1e-9, document_->size.value(map_->span) * 1.02)};
    return {0, std::max(1e-6, acrossOf(static_cast<std::int32_t>(curve().moments.size())))};
}

void MapPlot::resetZoom() {
    xAxis->setRange(whole(xAxis));
    yAxis->setRange(whole(yAxis));
    replot(rpQueuedReplot);
}

void MapPlot::clamp(QCPAxis* axis, const QCPRange& wanted) {
    if (clamping_) return;
    clamping_ = true;
    const double end = whole(axis).upper;
    const double width = std::clamp(wanted.size(), end * 1e-6, end);
    const double lower = std::clamp(wanted.lower, 0.0, end - width);
    axis->setRange(lower, lower + width);
    clamping_ = false;
}

MapPlot::Scale MapPlot::scale() const {
    Scale made;
    const std::size_t moments = curve().moments.size();
    for (std::size_t moment = 0; moment <= moments; ++moment)
        made.xs.push_back(xAxis->coordToPixel(acrossOf(static_cast<std::int32_t>(moment))));
    made.base = yAxis->coordToPixel(0);
    made.perByte = (yAxis->coordToPixel(1) - made.base) / document_->size.bytes;
    return made;
}

QRectF MapPlot::pixelsOf(const MapBlock& block) const {
    const double unit = document_->size.bytes;
    const double left = xAxis->coordToPixel(acrossOf(block.first));
    const double right = xAxis->coordToPixel(acrossOf(block.end));
    const double low = yAxis->coordToPixel(static_cast<double>(block.offset) / unit);
    const double high = yAxis->coordToPixel(static_cast<double>(block.offset + block.bytes) / unit);
    return QRectF(QPointF(left, high), QPointF(right, low));
}

// Slots: categories, then kinds of ops, then shades. Events know no category, so their blocks have
// the colour of the op, or, without one, shades by size that tell neighbours apart.
std::size_t MapPlot::slotOf(const MapBlock& block) const {
    if (block.category != core::Category::Unknown || block.storage != core::kNone)
        return static_cast<std::size_t>(block.category);
    if (block.op != core::kNone)
        return kFirstFamily + families_[static_cast<std::size_t>(block.op)];
    const auto mixed = static_cast<std::uint64_t>(block.bytes / 512) * 0x9e3779b97f4a7c15U;
    return kFirstShade + (mixed >> 62U);
}

QColor MapPlot::colourOf(std::size_t slot) const {
    if (slot < kFirstFamily) return theme().category(static_cast<core::Category>(slot));
    if (slot < kFirstShade) return theme().family(static_cast<OpFamily>(slot - kFirstFamily));
    constexpr std::array<core::Category, 4> kTints{
        core::Category::Parameter, core::Category::Activation, core::Category::Workspace,
        core::Category::Input};
    return blend(theme().category(core::Category::Unknown),
                 theme().category(kTints[slot - kFirstShade]), 0.45);
}

QPointF MapPlot::pixelOf(const MapBlock& block) const {
    return pixelsOf(block).center();
}

const MapBlock* MapPlot::blockAt(const QPointF& pixel) const {
    if (!map_ || !axisRect()->rect().contains(pixel.toPoint())) return nullptr;
    // Half a pixel around the cursor, so that thin blocks can be hit.
    const double unit = document_->size.bytes;
    const double left = xAxis->pixelToCoord(pixel.x() - 0.5),
                 right = xAxis->pixelToCoord(pixel.x() + 0.5);
    const double low = yAxis->pixelToCoord(pixel.y() + 0.5) * unit,
                 high = yAxis->pixelToCoord(pixel.y() - 0.5) * unit;
    for (const MapBlock& block : map_->blocks)
        if (static_cast<double>(block.offset) <= high &&
            static_cast<double>(block.offset + block.bytes) >= low &&
            acrossOf(block.first) <= right && acrossOf(block.end) >= left)
            return &block;
    return nullptr;
}

QString MapPlot::describe(const QPointF& pixel) const {
    const MapBlock* block = blockAt(pixel);
    if (!block) return {};
    const core::TrainingGraph& graph = document_->graph;
    QStringList lines;
    lines << (block->storage != core::kNone
                  ? tr("%1 · %2").arg(storageName(graph, block->storage),
                                      toQString(core::categoryName(block->category)))
              : block->category == core::Category::Workspace ? tr("workspace")
                                                             : tr("block of the allocator"));
    if (block->op != core::kNone) lines << tr("made by %1").arg(opText(graph, block->op));
    lines << tr("%1 at %2")
                 .arg(document_->size.text(core::Bytes(block->bytes)),
                      document_->size.text(core::Bytes(block->offset)));
    if (!steps_)
        lines << tr("from %1 to %2")
                     .arg(document_->time.text(nanoseconds(acrossOf(block->first))),
                          document_->time.text(nanoseconds(acrossOf(block->end))));
    return lines.join(QLatin1Char('\n'));
}

QString MapPlot::title() const {
    if (!map_) return {};
    const SizeUnit& size = document_->size;
    const QString wasted = percentText(map_->wasted(), 1);
    if (map_->recorded)
        return tr("recorded addresses · most live %1 · touched %2 · %3 of it free at the peak · "
                  "longest hole %4")
            .arg(size.text(map_->livePeak), size.text(map_->span), wasted, size.text(map_->hole));
    const QString whose =
        plan_ ? tr("%1 at %2")
                    .arg(plan_->planner, percentText(ratio(plan_->budget, document_->peak())))
              : tr("recorded order, packed");
    return tr("%1 · arena %2 · most live %3 · no layout below %4 · %5 wasted at the peak")
        .arg(whose, size.text(map_->span), size.text(map_->livePeak), size.text(map_->lowerBound),
             wasted);
}

void MapPlot::setSelection(const Selection& selection) {
    selection_ = selection;
    replot(rpQueuedReplot);
}

void MapPlot::mouseMoveEvent(QMouseEvent* event) {
    Plot::mouseMoveEvent(event);
    const QString text = event->buttons() ? QString() : describe(event->position());
    if (text.isEmpty())
        QToolTip::hideText();
    else
        QToolTip::showText(event->globalPosition().toPoint(), text, this);
}

void MapPlot::mousePressEvent(QMouseEvent* event) {
    pressed_ = event->pos();
    Plot::mousePressEvent(event);
}

void MapPlot::mouseReleaseEvent(QMouseEvent* event) {
    Plot::mouseReleaseEvent(event);
    if ((event->pos() - pressed_).manhattanLength() > 3) return;
    const MapBlock* block = blockAt(event->position());
    if (!block) return;
    if (block->storage != core::kNone)
        emit storagePicked(block->storage);
    else if (block->op != core::kNone)
        emit opPicked(block->op);
}

void MapPlot::mouseDoubleClickEvent(QMouseEvent* event) {
    Plot::mouseDoubleClickEvent(event);
    resetZoom();
}

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
        if (box.width() >= kNamed && box.height() >= kAxisPixels) named_.emplace_back(&block, box);
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
        painter->setBrush(blend(theme().panel, plot_.colourOf(slot), 0.9));
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
    painter->setPen(QColor("#10151b"));
    const QFontMetricsF metrics(painter->font());
    const core::TrainingGraph& graph = plot_.document_->graph;
    for (const auto& [block, whole] : named_) {
        const QRectF box = whole.adjusted(5, 1, -5, -1);
        if (box.height() < metrics.height()) continue;
        const QString name = block->storage != core::kNone ? storageName(graph, block->storage)
                             : block->op != core::kNone    ? shortOpName(graph.ops[block->op].name)
                                                           : QString();
        const QString size = plot_.document_->size.text(core::Bytes(block->bytes));
        QString text = name.isEmpty() ? size : name + QStringLiteral(" · ") + size;
        const QString layer = block->storage == core::kNone
                                  ? QString()
                                  : layerText(graph, graph.storages[block->storage].layer);
        if (const QString longer = text + QStringLiteral(" · ") + layer;
            !layer.isEmpty() && metrics.horizontalAdvance(longer) <= box.width())
            text = longer;
        if (metrics.horizontalAdvance(text) > box.width()) text = name;
        if (metrics.horizontalAdvance(text) <= box.width())
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
    const Selection& selection = plot_.selection_;
    const QRectF area = plot_.axisRect()->rect();
    const QColor ink = theme().light ? QColor("#000000") : QColor("#ffffff");
    painter->setBrush(Qt::NoBrush);
    painter->setPen(QPen(ink, 1.6));
    for (const MapBlock& block : plot_.map_->blocks) {
        const bool chosen = selection.storage != core::kNone
                                ? block.storage == selection.storage
                                : selection.op != core::kNone && block.op == selection.op;
        if (!chosen) continue;  // few are left
        const QRectF box = plot_.pixelsOf(block).intersected(area);
        if (!box.isEmpty()) painter->drawRect(box.adjusted(-1, -1, 1, 1));
    }
}

void MapLayer::drawTitle(QCPPainter* painter) {
    const QRectF area = plot_.axisRect()->rect();
    const QRectF line(area.left(), 12, area.width(), 22);
    const QString title = plot_.title();
    const QString name = title.section(QStringLiteral(" · "), 0, 0);
    const QString rest = title.mid(name.size());
    painter->setFont(uiFont(kBasePixels, true));
    painter->setPen(theme().text);
    painter->drawText(line, Qt::AlignVCenter, name);
    const double width = QFontMetricsF(painter->font()).horizontalAdvance(name);
    painter->setFont(uiFont(kBasePixels));
    painter->setPen(theme().muted);
    painter->drawText(line.adjusted(width, 0, 0, 0), Qt::AlignVCenter,
                      QFontMetricsF(painter->font())
                          .elidedText(rest, Qt::ElideRight, std::max(0.0, line.width() - width)));
}

}  // namespace hw::viewer

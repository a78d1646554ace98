// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/plots/map_plot.h"

#include <algorithm>
#include <array>

#include "viewer/models/live_set.h"
#include "viewer/plots/axis_ticker.h"
#include "viewer/plots/theme.h"

namespace hw::viewer {
namespace {
constexpr int kMapTop = 44;
constexpr double kMapClosest = 1e-6;
}  // namespace

MapPlot::MapPlot(QWidget* parent) : PlanePlot(kMapTop, kMapClosest, parent) {
    new MapLayer(this, MapLayer::Part::Blocks);
    new MapLayer(this, MapLayer::Part::Marks);
}

void MapPlot::show(const DocumentPointer& document, const PlanPointer& plan,
                   std::shared_ptr<const AddressMap> map) {
    document_ = document;
    plan_ = plan;
    map_ = map && !map->blocks.empty() ? std::move(map) : nullptr;
    note_.clear();
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
        const bool events = document_->time.axisUnit().size() > 3;
        xAxis->setTicker(QSharedPointer<UnitTicker>::create(
            steps ? QString() : document_->time.axisUnit(), events ? 4 : 7));
        yAxis->setTicker(QSharedPointer<UnitTicker>::create(document_->size.name, 6));
        xAxis->setLabel(steps            ? tr("step of the schedule")
                        : map_->recorded ? tr("time")
                                         : tr("time of the schedule"));
        yAxis->setLabel(map_->recorded ? tr("address, unused stretches left out")
                                       : tr("address in the arena"));
    }
    resetZoom();
}

core::Nanoseconds MapPlot::timeOf(std::int32_t moment) const {
    const std::vector<Moment>& moments = curve().moments;
    return moment < static_cast<std::int32_t>(moments.size())
               ? moments[static_cast<std::size_t>(std::max(0, moment))].begin
               : curve().time;
}

double MapPlot::acrossOf(std::int32_t moment) const {
    return steps_ ? moment : milliseconds(timeOf(moment));
}

QCPRange MapPlot::whole(const QCPAxis* axis) const {
    if (!map_) return {0, 1};
    if (axis == yAxis) return {0, std::max(1e-9, document_->size.value(map_->span) * 1.02)};
    return {0, std::max(1e-6, acrossOf(static_cast<std::int32_t>(curve().moments.size())))};
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

// Slots: bands, then shades. Blocks of which only events tell have shades by size that tell
// neighbours apart.
std::size_t MapPlot::slotOf(const MapBlock& block) const {
    if (!block.onlyEvents()) return block.band;
    const auto mixed = static_cast<std::uint64_t>(block.bytes / 512) * 0x9e3779b97f4a7c15U;
    return kFirstShade + (mixed >> 62U);
}

QColor MapPlot::colourOf(std::size_t slot) const {
    if (slot < kFirstShade) return theme().band(document_->bands, static_cast<Band>(slot));
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
    const Bands& bands = document_->bands;
    const QString name = nameOf(*block);
    QStringList lines;
    lines << (block->storage != core::kNone && !bands.byLine()
                  ? tr("%1 · %2").arg(name, bands.name(block->band))
              : !name.isEmpty()                                  ? name
              : block->band == bandOf(core::Category::Workspace) ? tr("workspace")
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

QString MapPlot::nameOf(const MapBlock& block) const {
    return block.storage != core::kNone ? storageName(*document_, block.storage)
                                        : document_->bands.placeOf(block.recorded);
}

BlockFacts MapPlot::factsOf(const MapBlock& block) const {
    return {block.recorded, block.address, core::Bytes(block.bytes), timeOf(block.first),
            timeOf(block.end)};
}

bool MapPlot::isSelected(const MapBlock& block) const {
    if (selection_.block)
        return block.address == selection_.block->address && factsOf(block) == *selection_.block;
    if (selection_.storage != core::kNone) return block.storage == selection_.storage;
    return selection_.op != core::kNone && block.op == selection_.op;
}

QString MapPlot::title() const {
    if (!map_) return {};
    const SizeUnit& size = document_->size;
    const QString wasted = percentText(map_->wasted(), 1);
    if (map_->recorded) {
        QString text =
            tr("recorded addresses · most live %1 · touched %2 · %3 of it free at the peak · "
               "longest hole %4")
                .arg(size.text(map_->livePeak), size.text(map_->span), wasted,
                     size.text(map_->hole));
        const core::Bytes elsewhere = document_->peak() - map_->livePeak;
        if (ratio(elsewhere, document_->peak()) > 0.01)
            text += tr(" · %1 are not shown: their addresses were not recorded")
                        .arg(size.text(elsewhere));
        return text;
    }
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

void MapPlot::clicked(const QPointF& pixel) {
    const MapBlock* block = blockAt(pixel);
    if (!block) return;
    if (block->storage != core::kNone)
        emit storagePicked(block->storage);
    else if (map_->recorded && (block->recorded >= 0 || block->op == core::kNone))
        emit blockPicked(factsOf(*block));
    else if (block->op != core::kNone)
        emit opPicked(block->op);
}

}  // namespace hw::viewer

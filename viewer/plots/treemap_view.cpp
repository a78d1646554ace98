// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/plots/treemap_view.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>
#include <cmath>

#include "viewer/plots/colours.h"
#include "viewer/plots/theme.h"

namespace hw::viewer {
namespace {

constexpr double kCaption = 46, kTreemapMargin = 14, kTitleHeight = 17;
constexpr double kTreemapPad = 5;

}  // namespace

QColor TreemapView::fillOf(const LiveNode& node) const {
    return blend(theme().panel, theme().band(document_->bands, node.band),
                 theme().light ? 0.85 : 0.9);
}

TreemapView::TreemapView(QWidget* parent) : QWidget(parent) {
    setMouseTracking(true);
    setFocusPolicy(Qt::StrongFocus);
    setMinimumSize(60, 60);
    setAccessibleName(tr("treemap"));
}

void TreemapView::show(const DocumentPointer& document, LiveSet set, const QString& name) {
    document_ = document;
    set_ = std::move(set);
    root_ = liveTree(*document_, set_);
    name_ = name;
    stale_ = true;
    update();
}

void TreemapView::clear(const QString& why) {
    why_ = why;
    document_ = nullptr;
    set_ = {};
    root_ = {};
    stale_ = true;
    update();
}

void TreemapView::setSelection(const Selection& selection) {
    selection_ = selection;
    update();
}

QRectF TreemapView::area() const {
    return QRectF(rect()).adjusted(kTreemapMargin, kCaption, -kTreemapMargin, -kTreemapMargin);
}

const std::vector<TreemapCell>& TreemapView::cells() {
    if (stale_) {
        cells_ = layOutTreemap(root_, area(), kTitleHeight);
        current_ = -1;
    }
    stale_ = false;
    return cells_;
}

const TreemapCell* TreemapView::cellAt(const QPointF& pixel) {
    const TreemapCell* found = nullptr;
    for (const TreemapCell& cell : cells())
        if (cell.box.contains(pixel)) found = &cell;  // parts come after their group
    return found;
}

QString TreemapView::describe(const LiveNode& node) const {
    const bool group = node.item < 0 && node.layer != core::kNone;
    QString text =
        QStringLiteral("%1\n%2 · %3")
            .arg(group ? layerText(document_->graph, node.layer) : node.name,
                 document_->size.text(node.bytes), percentText(ratio(node.bytes, set_.total), 1));
    if (node.item < 0) return text;
    const LiveItem& item = set_.items[static_cast<std::size_t>(node.item)];
    if (!document_->bands.byLine())
        text += QStringLiteral(" · ") + document_->bands.name(item.band);
    const QString layer = layerText(document_->graph, item.layer);
    if (!layer.isEmpty()) text += QLatin1Char('\n') + layer;
    if (item.storage == core::kNone) return text;
    const TensorInfo info = document_->tensorInfo(item.storage);
    if (!info.shape.isEmpty()) text += QStringLiteral("\n%1 · %2").arg(info.shape, info.dtype);
    const QString line = document_->lineOf(item.storage);
    if (!line.isEmpty() && line != node.name) text += QLatin1Char('\n') + line;
    return text;
}

void TreemapView::drawCell(QPainter& painter, const TreemapCell& cell) const {
    if (cell.solid) {
        // A seam between neighbours, where there is room for one.
        const bool seam = std::min(cell.box.width(), cell.box.height()) > 3;
        const QRectF box = seam ? cell.box.adjusted(0.5, 0.5, -0.5, -0.5) : cell.box;
        painter.fillRect(box, fillOf(*cell.node));
    } else if (cell.depth > 0) {
        const double share = std::min(0.22, 0.07 * cell.depth);
        painter.fillRect(cell.box.adjusted(0.5, 0.5, -0.5, -0.5),
                         blend(theme().raised, theme().muted, share));
    }
}

// Names that do not fit are left out, never cut so short that they say nothing.
void TreemapView::drawLabel(QPainter& painter, const TreemapCell& cell) const {
    const auto fits = [&](const QFontMetricsF& metrics, const QString& text, double width,
                          Qt::TextElideMode mode) {
        const QString cut = metrics.elidedText(text, mode, width);
        return cut == text || cut.size() >= 7 ? cut : QString();
    };
    const QString size = document_->size.text(cell.node->bytes);
    if (!cell.title.isNull()) {
        const QRectF line = cell.title.adjusted(3, 0, -3, 0);
        painter.setFont(uiFont(kAxisPixels, true));
        const QFontMetricsF metrics(painter.font());
        const double sizeWidth = QFontMetricsF(uiFont(kAxisPixels)).horizontalAdvance(size);
        const bool both =
            metrics.horizontalAdvance(cell.node->name) + sizeWidth + 14 < line.width();
        const QString name =
            fits(metrics, cell.node->name, both ? line.width() - sizeWidth - 12 : line.width(),
                 Qt::ElideLeft);
        painter.setPen(theme().text);
        painter.drawText(line, Qt::AlignVCenter | Qt::AlignLeft, name);
        if (!both) return;
        painter.setFont(uiFont(kAxisPixels));
        painter.setPen(theme().muted);
        painter.drawText(line, Qt::AlignVCenter | Qt::AlignRight, size);
        return;
    }
    if (!cell.solid) return;
    const QRectF room = cell.box.adjusted(kTreemapPad, 3, -kTreemapPad, -3);
    painter.setFont(uiFont(kAxisPixels));
    const QFontMetricsF metrics(painter.font());
    if (room.height() < metrics.height() || room.width() < 22) return;
    QString name = fits(metrics, cell.node->name, room.width(), Qt::ElideRight);
    // Of a line of code its number says more than the beginning of all.
    const QString line = cell.node->name.section(QLatin1Char(' '), 0, 0);
    if (name != cell.node->name && line.contains(QLatin1String(".py:")))
        name = fits(metrics, line, room.width(), Qt::ElideLeft);
    if (name.isEmpty()) return;
    painter.setPen(inkOn(fillOf(*cell.node)));
    painter.drawText(room, Qt::AlignTop | Qt::AlignLeft, name);
    if (room.height() < 2 * metrics.height() || metrics.horizontalAdvance(size) > room.width())
        return;
    painter.drawText(room.adjusted(0, metrics.height(), 0, 0), Qt::AlignTop | Qt::AlignLeft, size);
}

void TreemapView::drawSelection(QPainter& painter) const {
    const QColor ink = theme().light ? QColor("#000000") : QColor("#ffffff");
    for (const TreemapCell& cell : cells_) {
        const LiveNode& node = *cell.node;
        const bool tensor =
            selection_.storage != core::kNone && node.item >= 0 &&
            set_.items[static_cast<std::size_t>(node.item)].storage == selection_.storage;
        const bool layer = selection_.storage == core::kNone && node.item < 0 &&
                           node.layer != core::kNone && node.layer == selection_.layer;
        if (!tensor && !layer) continue;
        painter.setPen(QPen(ink, 2));
        painter.setBrush(Qt::NoBrush);
        painter.drawRect(cell.box.adjusted(1, 1, -1, -1));
    }
}

void TreemapView::drawCaption(QPainter& painter) const {
    const QRectF head(kTreemapMargin, 8, width() - 2 * kTreemapMargin, kCaption - 12);
    painter.setFont(uiFont(kBasePixels, true));
    painter.setPen(theme().text);
    const QFontMetricsF bold(painter.font());
    painter.drawText(
        head, Qt::AlignTop | Qt::AlignLeft,
        bold.elidedText(QStringLiteral("%1 · %2").arg(document_->size.text(set_.total), name_),
                        Qt::ElideRight, head.width()));
    const QString place = placeOf(document_->graph, set_.op);
    QString line = tr("at %1").arg(document_->time.text(set_.begin));
    if (!place.isEmpty()) line += QStringLiteral(" · ") + place;
    if (hasFocus() && current_ >= 0)  // what a pointer is told by a tip
        line = describe(*cells_[static_cast<std::size_t>(current_)].node)
                   .replace(QLatin1Char('\n'), QStringLiteral(" · "));
    painter.setFont(uiFont(kAxisPixels));
    painter.setPen(theme().muted);
    painter.drawText(head.adjusted(0, bold.height() + 1, 0, 0), Qt::AlignTop | Qt::AlignLeft,
                     QFontMetricsF(painter.font()).elidedText(line, Qt::ElideMiddle, head.width()));
}

void TreemapView::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.setRenderHint(QPainter::TextAntialiasing);
    if (!document_) {
        painter.setFont(uiFont(kBasePixels));
        painter.setPen(theme().muted);
        painter.drawText(QRectF(rect()).adjusted(kTreemapMargin, 0, -kTreemapMargin, 0),
                         Qt::AlignCenter | Qt::TextWordWrap, why_);
        return;
    }
    cells();
    drawCaption(painter);
    for (const TreemapCell& cell : cells_) drawCell(painter, cell);
    for (const TreemapCell& cell : cells_) drawLabel(painter, cell);
    drawSelection(painter);
    if (!hasFocus()) return;
    painter.setBrush(Qt::NoBrush);
    painter.setPen(theme().accent);
    painter.drawRect(QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5));
    if (current_ < 0) return;
    painter.setPen(QPen(theme().text, 2, Qt::DashLine));
    painter.drawRect(cells_[static_cast<std::size_t>(current_)].box.adjusted(1, 1, -1, -1));
}

void TreemapView::pick(const TreemapCell& cell) {
    const int item = cell.node->item;
    const core::StorageIndex storage =
        item < 0 ? core::kNone : set_.items[static_cast<std::size_t>(item)].storage;
    if (storage != core::kNone)
        emit storagePicked(storage);
    else if (cell.node->layer != core::kNone)
        emit layerPicked(cell.node->layer);
}

void TreemapView::mousePressEvent(QMouseEvent* event) {
    const TreemapCell* cell = document_ ? cellAt(event->position()) : nullptr;
    if (!cell) return;
    current_ = cell->solid ? static_cast<int>(cell - cells_.data()) : -1;
    pick(*cell);
    update();
}

int TreemapView::beside(int key) const {
    const QPointF from =
        current_ < 0 ? area().topLeft() : cells_[static_cast<std::size_t>(current_)].box.center();
    int best = current_;
    double least = 0;
    for (std::size_t i = 0; i < cells_.size(); ++i) {
        if (!cells_[i].solid || static_cast<int>(i) == current_) continue;
        const QPointF way = cells_[i].box.center() - from;
        const bool across = key == Qt::Key_Left || key == Qt::Key_Right;
        const bool back = key == Qt::Key_Left || key == Qt::Key_Up;
        const double ahead = (across ? way.x() : way.y()) * (back ? -1 : 1);
        const double aside = std::abs(across ? way.y() : way.x());
        if (current_ >= 0 && ahead < 1) continue;
        const double far = std::abs(ahead) + 2 * aside;
        if (best != current_ && far >= least) continue;
        best = static_cast<int>(i);
        least = far;
    }
    return best;
}

void TreemapView::keyPressEvent(QKeyEvent* event) {
    const int key = event->key();
    if (!document_ || key < Qt::Key_Left || key > Qt::Key_Down || event->modifiers() != 0)
        return QWidget::keyPressEvent(event);
    cells();
    current_ = beside(key);
    if (current_ >= 0) pick(cells_[static_cast<std::size_t>(current_)]);
    update();
}

void TreemapView::focusInEvent(QFocusEvent* event) {
    QWidget::focusInEvent(event);
    update();
}

void TreemapView::focusOutEvent(QFocusEvent* event) {
    QWidget::focusOutEvent(event);
    update();
}

void TreemapView::mouseMoveEvent(QMouseEvent* event) {
    const TreemapCell* cell = document_ ? cellAt(event->position()) : nullptr;
    if (cell && cell->depth > 0)
        QToolTip::showText(event->globalPosition().toPoint(), describe(*cell->node), this);
    else
        QToolTip::hideText();
}

void TreemapView::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    stale_ = true;
}

}  // namespace hw::viewer

// SPDX-License-Identifier: GPL-3.0-or-later
// What a flame graph says and how it is drawn.
#include <QPainter>
#include <algorithm>

#include "viewer/models/lanes.h"
#include "viewer/plots/colours.h"
#include "viewer/plots/flame_view.h"
#include "viewer/plots/theme.h"

namespace hw::viewer {
namespace {
constexpr double kNamed = 16;  // pixels below which nothing can be read
}

QString FlameView::describe(const core::OriginNode& node) const {
    const QString name = &node == &root_         ? name_
                         : node.frame != nullptr ? QStringLiteral("%1:%2 %3")
                                                       .arg(toQString(node.frame->file))
                                                       .arg(node.frame->line)
                                                       .arg(toQString(node.frame->function))
                                                 : toQString(node.name);
    if (other_) return name + QLatin1Char('\n') + bothText(node.bytes, node.other);
    return QStringLiteral("%1\n%2 · %3")
        .arg(name, document_->size.text(node.bytes),
             percentText(ratio(node.bytes, root_.bytes), 1));
}

QString FlameView::changeText(core::Bytes from, core::Bytes to) const {
    const QString sign = to > from   ? QStringLiteral("+")
                         : to < from ? QStringLiteral("−")
                                     : QString();
    return sign + document_->size.text(std::max(from, to) - std::min(from, to));
}

QString FlameView::bothText(core::Bytes here, core::Bytes there) const {
    return tr("%1: %2 here, %3 in %4")
        .arg(changeText(here, there), document_->size.text(here), document_->size.text(there),
             other_->name);
}

QString FlameView::sizeText(const core::OriginNode& node) const {
    return other_ ? changeText(node.bytes, node.other) : document_->size.text(node.bytes);
}

// The framework's own frames, and what the search does not find.
bool FlameView::isFaint(const core::OriginNode& node) const {
    return &node == &root_ || node.largest == core::kNone ||
           (node.frame != nullptr && node.frame->framework) ||
           (!search_.isEmpty() && !matches(node));
}

QColor FlameView::colourOf(const core::OriginNode& node) const {
    if (other_) {
        const double most = static_cast<double>(std::max(node.bytes, node.other).count());
        const double change = static_cast<double>((node.other - node.bytes).count());
        const QColor colour = changeColour(most == 0 ? 0 : change / most);
        const bool missed = !search_.isEmpty() && &node != &root_ && !matches(node);
        return missed ? blend(theme().panel, colour, 0.3) : colour;
    }
    if (&node == &root_ || node.largest == core::kNone)
        return blend(theme().raised, theme().muted, 0.3);
    const QColor colour = theme().band(document_->bands, document_->bandOf(node.largest));
    return blend(theme().panel, colour, isFaint(node) ? 0.3 : 0.85);
}

// Below its parent's name a layer's path says nothing new until it leaves it.
QString FlameView::label(const Cell& cell) const {
    if (cell.node == &root_) return name_;
    const QString name = toQString(cell.node->name);
    if (cell.parent < 0 || cell.node->frame != nullptr) return name;
    return layerTail(name, toQString(cells_[static_cast<std::size_t>(cell.parent)].node->name));
}

void FlameView::drawCell(QPainter& painter, const Cell& cell) const {
    const bool seam = cell.box.width() > 3;
    const QRectF box = seam ? cell.box.adjusted(0.5, 0.5, -0.5, -0.5) : cell.box;
    const QColor fill = colourOf(*cell.node);
    painter.fillRect(box, fill);
    const QRectF room = cell.box.adjusted(5, 0, -4, 0);
    if (room.width() < kNamed) return;
    const QString size = sizeText(*cell.node);
    const QString name = label(cell);
    const QFontMetricsF metrics(painter.font());
    const double sizeWidth = metrics.horizontalAdvance(size);
    const bool both = metrics.horizontalAdvance(name) + sizeWidth + 12 < room.width();
    QString cut = metrics.elidedText(name, Qt::ElideRight, room.width());
    // Of a frame the line says more than the beginning of all.
    const QString line = name.section(QLatin1Char(' '), 0, 0);
    if (cut != name && cell.node->frame != nullptr &&
        metrics.horizontalAdvance(line) <= room.width())
        cut = line;
    if (cut != name && cut.size() < 7) return;  // it would say nothing
    painter.setPen(inkOn(fill));
    painter.drawText(room, Qt::AlignVCenter | Qt::AlignLeft, cut);
    if (both) painter.drawText(room, Qt::AlignVCenter | Qt::AlignRight, size);
}

QString FlameView::searchText() const {
    if (other_)
        return QStringLiteral("“%1”: %2")
            .arg(search_, bothText(found(), found(&core::OriginNode::other)));
    return QStringLiteral("“%1”: %2, %3")
        .arg(search_, document_->size.text(found()), percentText(ratio(found(), root_.bytes), 1));
}

void FlameView::drawCaption(QPainter& painter) const {
    const QRectF head(kMargin, 6, width() - 2 * kMargin, kCaption - 10);
    painter.setFont(uiFont(kBasePixels, true));
    painter.setPen(theme().text);
    const QFontMetricsF bold(painter.font());
    painter.drawText(head, Qt::AlignTop | Qt::AlignLeft,
                     bold.elidedText(QStringLiteral("%1 · %2").arg(sizeText(root_), name_),
                                     Qt::ElideRight, head.width()));
    QString line = other_ ? bothText(root_.bytes, root_.other) : QString();
    if (current_ >= 0 && current_ < static_cast<int>(cells_.size()))
        line = describe(*cells_[static_cast<std::size_t>(current_)].node)
                   .replace(QLatin1Char('\n'), QStringLiteral(" · "));
    if (!search_.isEmpty()) line = searchText();
    painter.setFont(uiFont(kAxisPixels));
    painter.setPen(theme().muted);
    painter.drawText(head.adjusted(0, bold.height() + 1, 0, 0), Qt::AlignTop | Qt::AlignLeft,
                     QFontMetricsF(painter.font()).elidedText(line, Qt::ElideMiddle, head.width()));
}

void FlameView::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.setRenderHint(QPainter::TextAntialiasing);
    if (!document_) {
        painter.setFont(uiFont(kBasePixels));
        painter.setPen(theme().muted);
        painter.drawText(QRectF(rect()).adjusted(20, 0, -20, 0), Qt::AlignCenter | Qt::TextWordWrap,
                         why_);
        return;
    }
    cells();
    drawCaption(painter);
    painter.setFont(uiFont(kAxisPixels));
    for (const Cell& cell : cells_) drawCell(painter, cell);
    painter.setBrush(Qt::NoBrush);
    if (hasFocus()) {
        painter.setPen(theme().accent);
        painter.drawRect(QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5));
    }
    if (current_ < 0) return;
    painter.setPen(QPen(hasFocus() ? theme().accent : theme().text, 2));
    painter.drawRect(cells_[static_cast<std::size_t>(current_)].box.adjusted(1, 1, -1, -1));
}

}  // namespace hw::viewer

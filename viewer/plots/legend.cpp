// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/plots/legend.h"

#include <QPainter>
#include <algorithm>
#include <utility>

#include "viewer/plots/theme.h"

namespace hw::viewer {
namespace {
constexpr int kLegendSwatch = 10, kSpace = 7, kBetweenItems = 18;
constexpr int kRound = 2;  // of text widths
constexpr int kLegendPixels = 12, kRowHeight = 20, kNarrowestLegend = 60;
}  // namespace

Legend::Legend(QWidget* parent) : QWidget(parent) {
    setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Preferred);
    setAttribute(Qt::WA_NoSystemBackground);
}

void Legend::setItems(std::vector<Item> items) {
    items_ = std::move(items);
    updateGeometry();
    update();
}

int Legend::widthOf(const Item& item) const {
    return kLegendSwatch + kSpace +
           QFontMetrics(uiFont(kLegendPixels)).horizontalAdvance(item.name) + kRound;
}

// How many items each row has; one at least, however narrow it is.
std::vector<std::size_t> Legend::rowsWithin(int width) const {
    std::vector<std::size_t> rows{0};
    int used = 0;
    for (const Item& item : items_) {
        const int own = widthOf(item);
        if (rows.back() > 0 && used + kBetweenItems + own > width) rows.push_back(0), used = 0;
        used += (rows.back() > 0 ? kBetweenItems : 0) + own;
        ++rows.back();
    }
    return rows;
}

int Legend::heightWithin(int width) const {
    return static_cast<int>(rowsWithin(width).size()) * kRowHeight;
}

QSize Legend::sizeHint() const {
    int width = 0;
    for (const Item& item : items_) width += widthOf(item) + kBetweenItems;
    width = std::max(0, width - kBetweenItems);
    // Behind another tab it is as narrow as can be, and asks for no height by that.
    return {width, heightWithin(visibleRegion().isEmpty() ? width : this->width())};
}

QSize Legend::minimumSizeHint() const {
    return {kNarrowestLegend, sizeHint().height()};
}

// Its layout has to know that it needs another height now.
void Legend::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    if (const int needed = heightWithin(width()); needed != std::exchange(needed_, needed))
        QMetaObject::invokeMethod(  // a layout that is at work would not hear it
            this, [this] { updateGeometry(); }, Qt::QueuedConnection);
}

void Legend::drawItem(QPainter& painter, const Item& item, const QRect& place) const {
    painter.setPen(item.hollow ? QPen(item.colour) : QPen(Qt::NoPen));
    painter.setBrush(item.hollow ? QBrush(Qt::NoBrush) : QBrush(item.colour));
    const double middle = place.center().y() + 0.5;
    if (item.line)
        painter.drawRect(QRectF(place.left(), middle - 1, kLegendSwatch, 2));
    else
        painter.drawRoundedRect(
            QRectF(place.left(), middle - kLegendSwatch / 2.0, kLegendSwatch, kLegendSwatch), 2, 2);
    const QRect text = place.adjusted(kLegendSwatch + kSpace, 0, 0, 0);
    painter.setPen(theme().text);
    painter.drawText(text, Qt::AlignVCenter,
                     painter.fontMetrics().elidedText(item.name, Qt::ElideRight, text.width()));
}

// Each row ends at the right.
void Legend::paintEvent(QPaintEvent*) {
    if (height() < heightWithin(width())) updateGeometry();  // its tab has come to the front
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setFont(uiFont(kLegendPixels));
    const std::vector<std::size_t> rows = rowsWithin(width());
    std::size_t next = 0;
    int top = (height() - static_cast<int>(rows.size()) * kRowHeight) / 2;
    for (const std::size_t count : rows) {
        int right = width();
        for (std::size_t i = next + count; i-- > next;) {
            const int own = std::min(widthOf(items_[i]), width());
            drawItem(painter, items_[i], QRect(right - own, top, own, kRowHeight));
            right -= own + kBetweenItems;
        }
        next += count;
        top += kRowHeight;
    }
}

}  // namespace hw::viewer

// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/plots/legend.h"

#include <QPainter>

#include "viewer/plots/theme.h"

namespace hw::viewer {
namespace {
constexpr int kSwatch = 10, kSpace = 7, kBetween = 18;
constexpr int kRound = 2;  // of text widths
}  // namespace

Legend::Legend(QWidget* parent) : QWidget(parent) {
    setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Fixed);
    setAttribute(Qt::WA_NoSystemBackground);
}

void Legend::setItems(std::vector<Item> items) {
    items_ = std::move(items);
    updateGeometry();
    update();
}

QSize Legend::sizeHint() const {
    const QFontMetrics metrics(uiFont(12));
    int width = 0;
    for (const Item& item : items_)
        width += kSwatch + kSpace + metrics.horizontalAdvance(item.name) + kRound + kBetween;
    return {std::max(0, width - kBetween), 20};
}

// Where the room is short, names are drawn from the right end, so that the plan's stays.
void Legend::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setFont(uiFont(12));
    const QFontMetrics metrics(painter.font());
    int right = width();
    for (auto item = items_.rbegin(); item != items_.rend(); ++item) {
        const int text = metrics.horizontalAdvance(item->name) + kRound;
        const int left = right - text - kSpace - kSwatch;
        if (left < 0) break;
        painter.setPen(item->hollow ? QPen(item->colour) : QPen(Qt::NoPen));
        painter.setBrush(item->hollow ? QBrush(Qt::NoBrush) : QBrush(item->colour));
        const double middle = height() / 2.0;
        if (item->line)
            painter.drawRect(QRectF(left, middle - 1, kSwatch, 2));
        else
            painter.drawRoundedRect(QRectF(left, middle - kSwatch / 2.0, kSwatch, kSwatch), 2, 2);
        painter.setPen(theme().text);
        painter.drawText(QRect(right - text, 0, text, height()), Qt::AlignVCenter, item->name);
        right = left - kBetween;
    }
}

}  // namespace hw::viewer

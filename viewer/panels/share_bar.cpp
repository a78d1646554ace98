// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/panels/share_bar.h"

#include <QPainter>
#include <algorithm>

#include "viewer/plots/theme.h"

namespace hw::viewer {

void ShareBar::paint(QPainter* painter, const QStyleOptionViewItem& option,
                     const QModelIndex& index) const {
    QStyledItemDelegate::paint(painter, option, index);
    const QRectF room(option.rect.left() + 8, option.rect.center().y() - 2.5, kWidth - 8, 6);
    painter->fillRect(room, theme().line);
    const double share = std::clamp(index.data(role_).toDouble(), 0.0, 1.0);
    painter->fillRect(QRectF(room.left(), room.top(), room.width() * share, room.height()),
                      theme().accent);
}

}  // namespace hw::viewer

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QStyledItemDelegate>

namespace hw::viewer {

/// A bar beside a figure of a table: the share, 0 to 1, that the model answers `role` with.
class ShareBar : public QStyledItemDelegate {
public:
    static constexpr int kWidth = 72;  // pixels, for TableView::setLeading()

    ShareBar(int role, QObject* parent) : QStyledItemDelegate(parent), role_(role) {}
    void paint(QPainter* painter, const QStyleOptionViewItem& option,
               const QModelIndex& index) const override;

private:
    int role_;
};

}  // namespace hw::viewer

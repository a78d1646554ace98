// SPDX-License-Identifier: GPL-3.0-or-later
// Coloured swatches with their names, in as many rows as they need.
#pragma once

#include <QColor>
#include <QWidget>
#include <vector>

namespace hw::viewer {

class Legend : public QWidget {
    Q_OBJECT
public:
    struct Item {
        QColor colour;
        QString name;
        bool line = false;    // a line's swatch instead of an area's
        bool hollow = false;  // only the outline of an area
    };
    explicit Legend(QWidget* parent = nullptr);

    void setItems(std::vector<Item> items);
    const std::vector<Item>& items() const { return items_; }
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override;
    /// Pixels that all items need in as many rows as it takes.
    int heightWithin(int width) const;

protected:
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;

private:
    int widthOf(const Item& item) const;
    std::vector<std::size_t> rowsWithin(int width) const;
    void drawItem(QPainter& painter, const Item& item, const QRect& place) const;

    std::vector<Item> items_;
    int needed_ = 0;  // height at the present width
};

}  // namespace hw::viewer

// SPDX-License-Identifier: GPL-3.0-or-later
// A row of coloured swatches with their names.
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
    QSize minimumSizeHint() const override { return {0, 20}; }

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    std::vector<Item> items_;
};

}  // namespace hw::viewer

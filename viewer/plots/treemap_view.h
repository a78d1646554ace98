// SPDX-License-Identifier: GPL-3.0-or-later
// What is live at one moment as nested rectangles, as large as their bytes.
#pragma once

#include <QWidget>
#include <vector>

#include "viewer/models/document.h"
#include "viewer/models/selection.h"
#include "viewer/models/treemap.h"

namespace hw::viewer {

/// The arrow keys go from tensor to tensor, as a click chooses one.
class TreemapView : public QWidget {
    Q_OBJECT
public:
    explicit TreemapView(QWidget* parent = nullptr);

    /// `name`: whose peak it is ("recorded", "plan: highwater at 50 %").
    void show(const DocumentPointer& document, LiveSet set, const QString& name);
    /// `why`: what is shown instead, in words.
    void clear(const QString& why = {});
    void setSelection(const Selection& selection);

    const LiveSet& set() const { return set_; }
    const std::vector<TreemapCell>& cells();
    /// The smallest cell at a pixel; null outside.
    const TreemapCell* cellAt(const QPointF& pixel);
    QString describe(const LiveNode& node) const;

signals:
    void storagePicked(hw::core::StorageIndex storage);
    void layerPicked(hw::core::LayerIndex layer);

protected:
    void paintEvent(QPaintEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void focusInEvent(QFocusEvent* event) override;
    void focusOutEvent(QFocusEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;

private:
    QRectF area() const;
    /// The cell that an arrow key goes to; the current one where none lies that way.
    int beside(int key) const;
    void pick(const TreemapCell& cell);
    void drawCaption(QPainter& painter) const;
    void drawCell(QPainter& painter, const TreemapCell& cell) const;
    void drawLabel(QPainter& painter, const TreemapCell& cell) const;
    void drawSelection(QPainter& painter) const;
    QColor fillOf(const LiveNode& node) const;

    DocumentPointer document_;
    LiveSet set_;
    LiveNode root_;
    QString name_, why_;
    Selection selection_;
    std::vector<TreemapCell> cells_;
    int current_ = -1;  // cell that the keys are at
    bool stale_ = true;
};

}  // namespace hw::viewer

// SPDX-License-Identifier: GPL-3.0-or-later
// A tree of bytes as an icicle: what called below what is called, as wide as its bytes.
#pragma once

#include <QWidget>
#include <vector>

#include "core/session/origins.h"
#include "viewer/models/document.h"

namespace hw::viewer {

/// A click or Enter zooms to a part, a click on what is above it or Escape back; the arrow keys go
/// from part to part. With another session beside it shows what is more and what is less there.
class FlameView : public QWidget {
    Q_OBJECT
public:
    struct Cell {
        const core::OriginNode* node = nullptr;
        QRectF box;
        int depth = 0;    // rows from the top
        int parent = -1;  // index of the cell above
    };
    static constexpr double kMargin = 14, kCaption = 44, kRow = 20;  // pixels
    explicit FlameView(QWidget* parent = nullptr);

    /// `name`: what the bytes are ("recorded peak"). `other`: whose bytes are beside them in the
    /// tree (core::besideOther); null: none.
    void show(const DocumentPointer& document, core::OriginNode root, const QString& name,
              const DocumentPointer& other = nullptr);
    /// `why`: what is shown instead, in words.
    void clear(const QString& why = {});
    /// Parts whose name contains the text keep their colour, whatever its case; none: all do.
    void setSearch(const QString& text);

    const DocumentPointer& other() const { return other_; }
    const core::OriginNode& root() const { return root_; }
    /// What fills the width.
    const core::OriginNode& zoomed() const { return *way_.back(); }
    const std::vector<Cell>& cells();
    /// What is written on it.
    QString label(const Cell& cell) const;
    /// -1: none.
    int cellAt(const QPointF& pixel);
    int current() const { return current_; }
    /// Bytes below the topmost parts that the search finds; of the other session, too.
    core::Bytes found(core::Bytes core::OriginNode::*figure = &core::OriginNode::bytes) const;
    QString describe(const core::OriginNode& node) const;

signals:
    void storagePicked(hw::core::StorageIndex storage);
    /// A part was gone to, by mouse or keyboard: where it lies.
    void chosen(QRect box);

protected:
    void paintEvent(QPaintEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void focusInEvent(QFocusEvent* event) override;
    void focusOutEvent(QFocusEvent* event) override;

private:
    core::Bytes widthOf(const core::OriginNode& node) const {
        return other_ ? node.either : node.bytes;
    }
    /// "24.5 MB", "+1.2 MB" with another session beside.
    QString sizeText(const core::OriginNode& node) const;
    QString changeText(core::Bytes from, core::Bytes to) const;
    QString bothText(core::Bytes here, core::Bytes there) const;
    QString searchText() const;
    void layOut(const core::OriginNode& node, double left, double width, int depth, int parent);
    void zoomTo(int cell);
    void zoomOut();
    void choose(int cell);
    int beside(int step) const;
    int firstBelow() const;
    bool matches(const core::OriginNode& node) const;
    bool isFaint(const core::OriginNode& node) const;
    QColor colourOf(const core::OriginNode& node) const;
    void drawCaption(QPainter& painter) const;
    void drawCell(QPainter& painter, const Cell& cell) const;

    DocumentPointer document_, other_;
    core::OriginNode root_;
    std::vector<const core::OriginNode*> way_;  // from the root to what is zoomed to
    QString name_, search_, why_;
    std::vector<Cell> cells_;
    int current_ = -1;
    bool stale_ = true;
};

}  // namespace hw::viewer

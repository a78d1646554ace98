// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/plots/flame_view.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QToolTip>
#include <algorithm>

namespace hw::viewer {
namespace {

constexpr double kFlameNarrowest = 0.7;  // pixels of a part that is drawn

int depthOf(const core::OriginNode& node) {
    int deepest = 0;
    for (const core::OriginNode& child : node.children)
        deepest = std::max(deepest, 1 + depthOf(child));
    return deepest;
}

}  // namespace

FlameView::FlameView(QWidget* parent) : QWidget(parent) {
    setMouseTracking(true);
    setFocusPolicy(Qt::StrongFocus);
    setMinimumSize(200, 120);
    setAccessibleName(tr("flame graph"));
    way_ = {&root_};
}

void FlameView::show(const DocumentPointer& document, core::OriginNode root, const QString& name,
                     const DocumentPointer& other) {
    document_ = document;
    other_ = other;
    root_ = std::move(root);
    name_ = name;
    way_ = {&root_};
    current_ = -1;
    stale_ = true;
    setMinimumHeight(static_cast<int>(kCaption + kRow * (1 + depthOf(root_)) + kMargin));
    update();
}

void FlameView::clear(const QString& why) {
    why_ = why;
    show(nullptr, {}, {});
}

void FlameView::setSearch(const QString& text) {
    search_ = text;
    update();
}

bool FlameView::matches(const core::OriginNode& node) const {
    if (search_.isEmpty()) return false;
    if (toQString(node.name).contains(search_, Qt::CaseInsensitive)) return true;
    return node.frame != nullptr &&
           toQString(node.frame->file).contains(search_, Qt::CaseInsensitive);
}

core::Bytes FlameView::found(core::Bytes core::OriginNode::*figure) const {
    core::Bytes bytes;
    std::vector<const core::OriginNode*> open{&root_};
    while (!open.empty()) {
        const core::OriginNode* node = open.back();
        open.pop_back();
        if (matches(*node)) {
            bytes += node->*figure;
            continue;
        }
        for (const core::OriginNode& child : node->children) open.push_back(&child);
    }
    return bytes;
}

void FlameView::layOut(const core::OriginNode& node, double left, double width, int depth,
                       int parent) {
    if (width < kFlameNarrowest) return;
    const int index = static_cast<int>(cells_.size());
    cells_.push_back({&node, QRectF(left, kCaption + kRow * depth, width, kRow), depth, parent});
    const double scale =
        width / static_cast<double>(std::max<std::int64_t>(1, widthOf(node).count()));
    for (const core::OriginNode& child : node.children) {
        const double part = scale * static_cast<double>(widthOf(child).count());
        layOut(child, left, part, depth + 1, index);
        left += part;
    }
}

const std::vector<FlameView::Cell>& FlameView::cells() {
    if (!stale_) return cells_;
    stale_ = false;
    cells_.clear();
    const double width = this->width() - 2 * kMargin;
    for (std::size_t i = 0; i + 1 < way_.size(); ++i)
        cells_.push_back({way_[i],
                          QRectF(kMargin, kCaption + kRow * static_cast<double>(i), width, kRow),
                          static_cast<int>(i), static_cast<int>(i) - 1});
    const int above = static_cast<int>(cells_.size());
    if (document_) layOut(zoomed(), kMargin, width, above, above - 1);
    if (current_ >= static_cast<int>(cells_.size())) current_ = -1;
    return cells_;
}

int FlameView::cellAt(const QPointF& pixel) {
    const auto& all = cells();
    const auto found = std::find_if(all.begin(), all.end(),
                                    [&](const Cell& cell) { return cell.box.contains(pixel); });
    return found == all.end() ? -1 : static_cast<int>(found - all.begin());
}

void FlameView::zoomTo(int index) {
    std::vector<const core::OriginNode*> way;
    for (int at = index; at >= 0; at = cells()[static_cast<std::size_t>(at)].parent)
        way.insert(way.begin(), cells_[static_cast<std::size_t>(at)].node);
    way_ = std::move(way);
    current_ = static_cast<int>(way_.size()) - 1;
    stale_ = true;
    update();
}

void FlameView::zoomOut() {
    if (way_.size() > 1) way_.pop_back();
    current_ = static_cast<int>(way_.size()) - 1;
    stale_ = true;
    update();
}

void FlameView::choose(int index) {
    if (index < 0) return;
    current_ = index;
    const core::OriginNode& node = *cells()[static_cast<std::size_t>(index)].node;
    if (node.children.empty() && node.largest != core::kNone) emit storagePicked(node.largest);
    emit chosen(cells_[static_cast<std::size_t>(index)].box.toRect());
    update();
}

// The next cell in the row, to the left or the right.
int FlameView::beside(int step) const {
    const int depth = cells_[static_cast<std::size_t>(current_)].depth;
    for (int at = current_ + step; at >= 0 && at < static_cast<int>(cells_.size()); at += step)
        if (cells_[static_cast<std::size_t>(at)].depth == depth) return at;
    return current_;
}

int FlameView::firstBelow() const {
    const auto below = std::find_if(cells_.begin(), cells_.end(),
                                    [&](const Cell& cell) { return cell.parent == current_; });
    return below == cells_.end() ? current_ : static_cast<int>(below - cells_.begin());
}

void FlameView::keyPressEvent(QKeyEvent* event) {
    if (cells().empty()) return QWidget::keyPressEvent(event);
    const bool none = current_ < 0;
    switch (event->key()) {
        case Qt::Key_Up:
            return choose(none ? 0 : cells_[static_cast<std::size_t>(current_)].parent);
        case Qt::Key_Down:
            return choose(none ? 0 : firstBelow());
        case Qt::Key_Left:
            return choose(none ? 0 : beside(-1));
        case Qt::Key_Right:
            return choose(none ? 0 : beside(1));
        case Qt::Key_Return:
        case Qt::Key_Enter:
            if (!none) zoomTo(current_);
            return;
        case Qt::Key_Escape:
        case Qt::Key_Backspace:
            return zoomOut();
        case Qt::Key_Home:
            return zoomTo(0);
        default:
            QWidget::keyPressEvent(event);
    }
}

void FlameView::mousePressEvent(QMouseEvent* event) {
    const int cell = cellAt(event->position());
    if (cell < 0) return;
    choose(cell);
    if (event->button() == Qt::LeftButton) zoomTo(cell);
}

void FlameView::mouseMoveEvent(QMouseEvent* event) {
    const int cell = cellAt(event->position());
    if (cell < 0) return QToolTip::hideText();
    QToolTip::showText(event->globalPosition().toPoint(),
                       describe(*cells_[static_cast<std::size_t>(cell)].node), this);
}

void FlameView::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    stale_ = true;
}

void FlameView::focusInEvent(QFocusEvent* event) {
    QWidget::focusInEvent(event);
    update();
}

void FlameView::focusOutEvent(QFocusEvent* event) {
    QWidget::focusOutEvent(event);
    update();
}

}  // namespace hw::viewer

// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/plots/area_graph.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace hw::viewer {
namespace {

constexpr int kGroup = 32;  // pixels

// What neighbours share is filled at once: memory lies in rows, and single columns cost a row each.
void paint(QPainter& painter, const std::vector<QRect>& strips, const QColor& colour) {
    for (std::size_t first = 0, end = 0; first < strips.size(); first = end) {
        int top = strips[first].top(), bottom = strips[first].bottom();
        end = first + 1;
        while (end < strips.size() && strips[end].left() == strips[end - 1].right() + 1 &&
               strips[end].right() - strips[first].left() < kGroup) {
            top = std::max(top, strips[end].top());
            bottom = std::min(bottom, strips[end].bottom());
            ++end;
        }
        const QRect shared(QPoint(strips[first].left(), top),
                           QPoint(strips[end - 1].right(), bottom));
        if (shared.isValid()) painter.fillRect(shared, colour);
        for (std::size_t i = first; i < end; ++i) {
            QRect above = strips[i], below = strips[i];
            if (shared.isValid()) above.setBottom(top - 1), below.setTop(bottom + 1);
            if (above.isValid()) painter.fillRect(above, colour);
            if (shared.isValid() && below.isValid()) painter.fillRect(below, colour);
        }
    }
}

}  // namespace

void AreaGraph::draw(QCPPainter* painter) {
    const int size = data()->size();
    const bool stacked =
        (!below_ || below_->data()->size() == size) && (!top_ || top_->data()->size() == size);
    if (painter->modes().testFlag(QCPPainter::pmVectorized) || !stacked || size < 2)
        return QCPGraph::draw(painter);
    painter->setAntialiasing(
        false);  // which moves everything by half a pixel: no edge is sharp then
    const auto at = [](const QCPGraph& graph, int i) {
        return (graph.data()->constBegin() + i)->value;
    };
    const auto highest = [&](int i) { return at(top_ ? *top_ : *this, i); };
    const QRect area = clipRect();
    std::vector<QRect> strips;  // by their left ends
    const auto fill = [&](int left, int right, int i) {
        left = std::max(left, area.left());
        right = std::min(right, area.right() + 1);
        const double value = at(*this, i), base = below_ ? at(*below_, i) : 0;
        if (left >= right || !(value > base)) return;
        // Whole pixels of an opaque colour: everything else is blended, many times slower.
        const int top = qRound(valueAxis()->coordToPixel(value));
        const int bottom = qRound(valueAxis()->coordToPixel(base));
        strips.push_back(QRect(left, top, right - left, bottom - top));
    };
    const QCPRange seen = keyAxis()->range();
    int column = area.left() - 1, best = -1;  // the column that is not finished, and its step
    for (int i = 0; i + 1 < size; ++i) {
        const double from = std::max((data()->constBegin() + i)->key, seen.lower);
        const double to = std::min((data()->constBegin() + i + 1)->key, seen.upper);
        if (!(to >= from)) continue;
        const int first = static_cast<int>(std::floor(keyAxis()->coordToPixel(from)));
        const int last = static_cast<int>(std::floor(keyAxis()->coordToPixel(to)));
        if (first > column || best < 0) {
            if (best >= 0) fill(column, column + 1, best);
            column = first, best = i;
        } else if (highest(i) > highest(best)) {
            best = i;
        }
        if (last > first) {
            fill(column, column + 1, best);
            fill(first + 1, last, i);
            column = last, best = i;
        }
    }
    if (best >= 0) fill(column, column + 1, best);
    paint(*painter, strips, brush().color());
}

}  // namespace hw::viewer

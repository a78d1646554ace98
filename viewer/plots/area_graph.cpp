// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/plots/area_graph.h"

#include <algorithm>
#include <cmath>

namespace hw::viewer {

void AreaGraph::draw(QCPPainter* painter) {
    const int size = data()->size();
    const bool stacked =
        (!below_ || below_->data()->size() == size) && (!top_ || top_->data()->size() == size);
    if (painter->modes().testFlag(QCPPainter::pmVectorized) || !stacked || size < 2)
        return QCPGraph::draw(painter);
    const auto at = [](const QCPGraph& graph, int i) {
        return (graph.data()->constBegin() + i)->value;
    };
    const auto highest = [&](int i) { return at(top_ ? *top_ : *this, i); };
    const QRect area = clipRect();
    const auto fill = [&](int left, int right, int i) {
        left = std::max(left, area.left());
        right = std::min(right, area.right() + 1);
        const double value = at(*this, i), base = below_ ? at(*below_, i) : 0;
        if (left >= right || !(value > base)) return;
        // Whole pixels of an opaque colour: everything else is blended, many times slower.
        const int top = qRound(valueAxis()->coordToPixel(value));
        const int bottom = qRound(valueAxis()->coordToPixel(base));
        painter->fillRect(QRect(left, top, right - left, bottom - top), brush().color());
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
}

}  // namespace hw::viewer

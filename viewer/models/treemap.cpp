// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/models/treemap.h"

#include <algorithm>
#include <cstddef>

namespace hw::viewer {
namespace {

constexpr double kSmallest = 5;  // pixels on a side of a group that is divided
constexpr double kTitled = 46, kTitledHeight = 34;
constexpr double kFrame = 2;

// The worst ratio of sides in a row of weights [first, last) that sum to `sum`, laid along `side`;
// `scale` is area per weight.
double worst(const std::vector<double>& weights, std::size_t first, std::size_t last, double sum,
             double side, double scale) {
    const double thickness = sum * scale / side;
    const double longest = weights[first] * scale / thickness;
    const double shortest = weights[last - 1] * scale / thickness;
    return std::max(longest / thickness, thickness / shortest);
}

void place(const LiveNode& node, const QRectF& box, int depth, double titleHeight,
           std::vector<TreemapCell>& cells) {
    const bool divided =
        node.item < 0 && !node.children.empty() && std::min(box.width(), box.height()) >= kSmallest;
    TreemapCell cell{box, &node, depth, {}, !divided};
    QRectF inside = box;
    if (divided && depth > 0) {
        const double frame = std::min(box.width(), box.height()) > 16 ? kFrame : 0;
        inside = box.adjusted(frame, frame, -frame, -frame);
        if (box.width() >= kTitled && box.height() >= kTitledHeight + titleHeight) {
            cell.title = QRectF(inside.left(), box.top(), inside.width(), titleHeight);
            inside.setTop(cell.title.bottom());
        }
    }
    cells.push_back(cell);
    if (!divided) return;
    std::vector<double> weights;
    for (const LiveNode& child : node.children)
        weights.push_back(static_cast<double>(child.bytes.count()));
    const std::vector<QRectF> boxes = squarify(weights, inside);
    for (std::size_t i = 0; i < boxes.size(); ++i)
        place(node.children[i], boxes[i], depth + 1, titleHeight, cells);
}

}  // namespace

std::vector<QRectF> squarify(const std::vector<double>& weights, const QRectF& area) {
    std::vector<QRectF> boxes(weights.size());
    double left = 0;
    for (const double weight : weights) left += weight;
    QRectF room = area;
    for (std::size_t first = 0; first < weights.size();) {
        const double side = std::min(room.width(), room.height());
        const double scale = left > 0 ? room.width() * room.height() / left : 0;
        if (side <= 0 || scale <= 0) {  // nothing left to divide
            for (; first < weights.size(); ++first) boxes[first] = QRectF(room.topLeft(), QSizeF());
            break;
        }
        std::size_t last = first + 1;
        double sum = weights[first];
        double ratio = worst(weights, first, last, sum, side, scale);
        while (last < weights.size()) {
            const double wider = worst(weights, first, last + 1, sum + weights[last], side, scale);
            if (wider > ratio) break;
            ratio = wider;
            sum += weights[last++];
        }
        // The last row takes what rounding left over.
        const bool all = last == weights.size();
        const bool upright = room.width() >= room.height();
        const double thickness =
            all ? (upright ? room.width() : room.height()) : sum * scale / side;
        double at = upright ? room.top() : room.left();
        for (; first < last; ++first) {
            const double length = weights[first] / sum * side;
            boxes[first] = upright ? QRectF(room.left(), at, thickness, length)
                                   : QRectF(at, room.top(), length, thickness);
            at += length;
        }
        left -= sum;
        if (upright)
            room.setLeft(room.left() + thickness);
        else
            room.setTop(room.top() + thickness);
    }
    return boxes;
}

std::vector<TreemapCell> layOutTreemap(const LiveNode& root, const QRectF& area,
                                       double titleHeight) {
    std::vector<TreemapCell> cells;
    if (root.bytes > core::Bytes(0) && area.width() > 0 && area.height() > 0)
        place(root, area, 0, titleHeight, cells);
    return cells;
}

}  // namespace hw::viewer

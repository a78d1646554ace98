// SPDX-License-Identifier: GPL-3.0-or-later
// Squarified treemaps (Bruls, Huizing, van Wijk: Squarified Treemaps, 2000), nested by layer.
#pragma once

#include <QRectF>
#include <vector>

#include "viewer/models/live_set.h"

namespace hw::viewer {

/// One rectangle a weight, in the order of the weights, which must be positive and descending;
/// together they fill `area`, each in proportion to its weight and as square as the rule makes it.
std::vector<QRectF> squarify(const std::vector<double>& weights, const QRectF& area);

struct TreemapCell {
    QRectF box;
    const LiveNode* node = nullptr;
    int depth = 0;
    QRectF title;       // room for a group's name above its parts; null: none
    bool solid = true;  // drawn as one: an item, or a group too small to be divided
};

/// Parents before their parts. Groups smaller than a few pixels are not divided, so that the number
/// of cells is bounded by the area. `titleHeight`: of a line of text.
std::vector<TreemapCell> layOutTreemap(const LiveNode& root, const QRectF& area,
                                       double titleHeight);

}  // namespace hw::viewer

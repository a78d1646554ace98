// SPDX-License-Identifier: GPL-3.0-or-later
// Who holds the peak: the layers of a step with all that their ops hold, save and take.
#pragma once

#include <map>
#include <vector>

#include "viewer/models/document.h"

namespace hw::viewer {

/// A layer with all its parts. Workspace at the peak belongs to the layer of the op that runs.
struct LayerShare {
    core::LayerIndex layer = core::kNone;   // kNone: what belongs to no layer, or is absent here
    core::LayerIndex absent = core::kNone;  // the other session's layer that this one has not
    int parent = -1;                        // index into the shares
    std::vector<int> parts;                 // the largest at the peak first
    QString name;                           // the end of its path that its parent has not
    core::Bytes atPeak;
    core::Bytes saved;  // made in the forward pass, read in the backward pass
    core::Nanoseconds forward, backward, other;  // other: optimizer, and phases not recorded
    std::int64_t ops = 0;
    core::OpIndex firstOp = core::kNone;
};

struct LayerTree {
    std::vector<LayerShare> shares;
    std::vector<int> roots;  // the largest at the peak first
    bool phases = false;     // were recorded, or could be told by the names of the ops
    bool peaks = false;      // something at the peak belongs to a layer
};

/// Layers that ran no op and hold nothing at the peak are left out.
LayerTree layerTree(const Document& document);

/// Adds the layers that only the other session has, below those of its own where they are known.
/// Returns what each of the other's layers holds at its peak, by path.
std::map<QString, core::Bytes> addLayersOf(const Document& other, const Document& document,
                                           LayerTree& tree);

}  // namespace hw::viewer

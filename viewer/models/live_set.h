// SPDX-License-Identifier: GPL-3.0-or-later
// What is in memory at one moment of a curve, and the same by layer.
#pragma once

#include <QString>
#include <vector>

#include "viewer/models/document.h"

namespace hw::viewer {

struct LiveItem {
    core::StorageIndex storage = core::kNone;  // kNone: no storage of its own, see `name`
    Band band = kUnknownBand;
    core::LayerIndex layer = core::kNone;
    core::OpIndex op = core::kNone;  // that made it, or during which it came into being
    core::Bytes bytes;
    QString name;  // "workspace of convolution"; empty for a storage
};

/// The items sum to `total`, the judge's bytes of the moment.
struct LiveSet {
    std::size_t moment = 0;
    core::OpIndex op = core::kNone;  // that runs
    core::Nanoseconds begin;         // in the curve's own time
    core::Bytes total;
    std::vector<LiveItem> items;  // the largest first
};

/// Storages, the running op's workspace, and one item a band for what else counts: encoded forms,
/// and copies that a recomputation drops at once. The curve is the document's or one of a plan of
/// it. Requires moments.
LiveSet liveAt(const Document& document, const StepCurve& curve, std::size_t moment);

/// A node of the tree that a treemap draws: a layer, or one item of the set.
struct LiveNode {
    QString name;
    core::Bytes bytes;
    core::LayerIndex layer = core::kNone;
    Band band = kUnknownBand;        // that holds most of it
    int item = -1;                   // index into the set; -1: a group
    std::vector<LiveNode> children;  // the largest first
};

/// By the tree of layers, where a layer with a single part is named after both; without layers by
/// category or line, and where neither is known, by the op that made it.
LiveNode liveTree(const Document& document, const LiveSet& set);

/// What tables call a storage: the op that made it ("native_batch_norm [1]": its second result), or
/// the category of a constant; where bytes are split by line, that line.
QString storageName(const Document& document, core::StorageIndex storage);
/// The same of a graph with what implementations make, which no document holds.
QString storageName(const core::TrainingGraph& graph, core::StorageIndex storage);

/// The same for an item; of an imported trace the op during which it was allocated.
QString itemName(const Document& document, const LiveItem& item);

/// The last op that reads or writes it in captured order; kNone where none does.
core::OpIndex lastUser(const core::Storage& storage);

}  // namespace hw::viewer

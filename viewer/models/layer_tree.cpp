// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/models/layer_tree.h"

#include <QObject>
#include <algorithm>

#include "viewer/models/live_set.h"

namespace hw::viewer {
namespace {

using core::Bytes;
using core::kNone;

// Logs without phases still name their backward ops.
bool backwardOp(const core::Op& op) {
    return op.phase == core::Phase::Backward ||
           (op.phase == core::Phase::Unknown && op.name.find("ackward") != std::string::npos);
}

class TreeMaker {
public:
    explicit TreeMaker(const Document& document)
        : document_(document), graph_(document.graph), own_(graph_.layers.size() + 1) {}

    LayerTree make() {
        addOps();
        addPeak();
        addSaved();
        for (core::LayerIndex l = static_cast<core::LayerIndex>(graph_.layers.size()) - 1; l >= 0;
             --l)
            own_[slot(l)].layer = l;
        std::vector<std::vector<core::LayerIndex>> parts(graph_.layers.size());
        std::vector<core::LayerIndex> tops;
        for (core::LayerIndex l = 0; l < static_cast<core::LayerIndex>(graph_.layers.size()); ++l) {
            const core::LayerIndex parent = graph_.layers[l].parent;
            (parent == kNone ? tops : parts[static_cast<std::size_t>(parent)]).push_back(l);
        }
        for (const core::LayerIndex top : tops) keepRoot(add(top, parts, -1));
        own_.back().layer = kNone;
        own_.back().name = QObject::tr("(no layer)");
        tree_.shares.push_back(own_.back());
        keepRoot(static_cast<int>(tree_.shares.size()) - 1);
        sortParts(tree_.roots);
        return std::move(tree_);
    }

private:
    std::size_t slot(core::LayerIndex layer) const {
        return layer == kNone ? own_.size() - 1 : static_cast<std::size_t>(layer);
    }

    void addOps() {
        for (std::size_t i = 0; i < graph_.ops.size(); ++i) {
            const core::Op& op = graph_.ops[i];
            LayerShare& share = own_[slot(op.layer)];
            const bool backward = backwardOp(op);
            tree_.phases = tree_.phases || backward;
            (backward                           ? share.backward
             : op.phase == core::Phase::Forward ? share.forward
                                                : share.other) += op.time;
            ++share.ops;
            if (share.firstOp == kNone) share.firstOp = static_cast<core::OpIndex>(i);
        }
    }
    void addPeak() {
        if (document_.curve.moments.empty()) return;
        for (const LiveItem& item :
             liveAt(document_, document_.curve, document_.curve.peakMoment).items) {
            own_[slot(item.layer)].atPeak += item.bytes;
            tree_.peaks = tree_.peaks || item.layer != kNone;
        }
    }
    void addSaved() {
        for (const core::Storage& storage : graph_.storages) {
            if (storage.isConstant() || backwardOp(graph_.ops[storage.creator]) ||
                graph_.ops[storage.creator].phase == core::Phase::Optimizer)
                continue;
            const bool read =
                std::any_of(storage.readers.begin(), storage.readers.end(),
                            [&](core::OpIndex reader) { return backwardOp(graph_.ops[reader]); });
            if (read) own_[slot(storage.layer)].saved += storage.bytes;
        }
    }

    // Parents before parts; figures are summed on the way back.
    int add(core::LayerIndex layer, const std::vector<std::vector<core::LayerIndex>>& parts,
            int parent) {
        const auto at = static_cast<int>(tree_.shares.size());
        tree_.shares.push_back(own_[slot(layer)]);
        tree_.shares.back().parent = parent;
        tree_.shares.back().name = nameOf(layer);
        for (const core::LayerIndex part : parts[static_cast<std::size_t>(layer)]) {
            const int made = add(part, parts, at);
            if (made < 0) continue;
            LayerShare& share = tree_.shares[static_cast<std::size_t>(at)];
            const LayerShare& sub = tree_.shares[static_cast<std::size_t>(made)];
            share.atPeak += sub.atPeak, share.saved += sub.saved, share.ops += sub.ops;
            share.forward += sub.forward, share.backward += sub.backward, share.other += sub.other;
            if (share.firstOp == kNone || (sub.firstOp != kNone && sub.firstOp < share.firstOp))
                share.firstOp = sub.firstOp;
            share.parts.push_back(made);
        }
        LayerShare& share = tree_.shares[static_cast<std::size_t>(at)];
        if (share.ops == 0 && share.atPeak == Bytes(0)) {
            tree_.shares.resize(static_cast<std::size_t>(at));  // with all its parts, empty too
            return -1;
        }
        sortParts(share.parts);
        return at;
    }
    void keepRoot(int share) {
        if (share < 0) return;
        const LayerShare& root = tree_.shares[static_cast<std::size_t>(share)];
        if (root.ops > 0 || root.atPeak > Bytes(0)) tree_.roots.push_back(share);
    }
    void sortParts(std::vector<int>& parts) {
        std::stable_sort(parts.begin(), parts.end(), [this](int a, int b) {
            const LayerShare &left = tree_.shares[static_cast<std::size_t>(a)],
                             &right = tree_.shares[static_cast<std::size_t>(b)];
            if (left.atPeak != right.atPeak) return left.atPeak > right.atPeak;
            return left.firstOp < right.firstOp;
        });
    }

    QString nameOf(core::LayerIndex layer) const {
        const core::LayerIndex above = graph_.layers[layer].parent;
        return layerTail(layerText(graph_, layer), layerText(graph_, above));
    }

    const Document& document_;
    const core::TrainingGraph& graph_;
    std::vector<LayerShare> own_;  // by layer, the last: no layer
    LayerTree tree_;
};

}  // namespace

LayerTree layerTree(const Document& document) {
    return TreeMaker(document).make();
}

std::map<QString, Bytes> addLayersOf(const Document& other, const Document& document,
                                     LayerTree& tree) {
    std::map<QString, Bytes> held;
    std::map<QString, int> known;  // place in the tree, by path
    for (std::size_t i = 0; i < tree.shares.size(); ++i)
        if (tree.shares[i].layer != kNone)
            known[layerText(document.graph, tree.shares[i].layer)] = static_cast<int>(i);
    const LayerTree theirs = layerTree(other);
    const auto pathOf = [&](int share) {
        return layerText(other.graph, theirs.shares[static_cast<std::size_t>(share)].layer);
    };
    for (const LayerShare& share : theirs.shares) {  // parents before parts
        if (share.layer == kNone) continue;
        const QString path = layerText(other.graph, share.layer);
        held[path] = share.atPeak;
        const auto made = static_cast<int>(tree.shares.size());
        if (!known.try_emplace(path, made).second) continue;
        LayerShare absent;
        absent.absent = share.layer;
        absent.name = share.name;
        absent.parent = share.parent < 0 ? -1 : known.at(pathOf(share.parent));
        tree.shares.push_back(std::move(absent));
        std::vector<int>& row =
            tree.shares.back().parent < 0
                ? tree.roots
                : tree.shares[static_cast<std::size_t>(tree.shares.back().parent)].parts;
        row.push_back(made);
    }
    return held;
}

}  // namespace hw::viewer

// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/models/live_set.h"

#include <QObject>
#include <algorithm>
#include <map>

namespace hw::viewer {
namespace {

using core::Bytes;
using core::kNone;

Bytes sum(const std::vector<LiveItem>& items) {
    Bytes total;
    for (const LiveItem& item : items) total += item.bytes;
    return total;
}

// What the moment's figures hold beyond its items.
BandBytes unexplained(const Moment& moment, const std::vector<LiveItem>& items) {
    BandBytes rest = moment.byBand;
    for (const LiveItem& item : items) rest[item.band] -= item.bytes;
    return rest;
}

void addRest(const core::TrainingGraph& graph, const Moment& moment, LiveSet& set) {
    const core::LayerIndex layer = moment.op == kNone ? kNone : graph.ops[moment.op].layer;
    if (graph.events.empty()) {  // an imported curve knows its total only
        const Bytes left = moment.total - sum(set.items);
        if (left > Bytes(0))
            set.items.push_back({kNone, kUnknownBand, kNone, kNone, left,
                                 QObject::tr("not explained by the trace")});
        return;
    }
    const BandBytes rest = unexplained(moment, set.items);
    for (Band band = 0; band < kBandCount; ++band) {
        const Bytes left = rest[band];
        if (left <= Bytes(0)) continue;
        const QString name =
            band == bandOf(core::Category::Workspace) && moment.op != kNone
                ? QObject::tr("workspace of %1").arg(shortOpName(graph.ops[moment.op].name))
                : QObject::tr("encoded forms and copies");
        set.items.push_back({kNone, band, layer, moment.op, left, name});
    }
}

class LiveTreeMaker {
public:
    LiveTreeMaker(const Document& document, const LiveSet& set)
        : document_(document), graph_(document.graph), set_(set) {}

    LiveNode make() {
        for (int i = 0; i < static_cast<int>(set_.items.size()); ++i) {
            const LiveItem& item = set_.items[static_cast<std::size_t>(i)];
            if (item.bytes <= Bytes(0)) continue;
            if (item.layer != kNone)
                items_[item.layer].push_back(i);
            else
                loose_[groupOf(item)].push_back(i);
        }
        const auto layers = static_cast<core::LayerIndex>(graph_.layers.size());
        for (core::LayerIndex l = 0; l < layers; ++l)
            if (const auto parent = graph_.layers[l].parent; parent != kNone)
                parts_[parent].push_back(l);
        LiveNode root;
        for (core::LayerIndex l = 0; l < layers; ++l)
            if (graph_.layers[l].parent == kNone) adopt(root, layerNode(l, {}));
        for (const auto& [name, items] : loose_) {
            LiveNode group;
            group.name = name;
            addItems(group, items);
            finish(group);
            adopt(root, std::move(group));
        }
        finish(root);
        return root;
    }

private:
    static void adopt(LiveNode& parent, LiveNode child) {
        if (child.bytes <= Bytes(0)) return;
        parent.bytes += child.bytes;
        parent.children.push_back(std::move(child));
    }
    void addItems(LiveNode& node, const std::vector<int>& items) {
        for (const int i : items) {
            const LiveItem& item = set_.items[static_cast<std::size_t>(i)];
            LiveNode leaf;
            leaf.name = itemName(document_, item);
            leaf.bytes = item.bytes;
            leaf.layer = item.layer;
            leaf.band = item.band;
            leaf.item = i;
            adopt(node, std::move(leaf));
        }
    }
    LiveNode layerNode(core::LayerIndex layer, const QString& above) {
        LiveNode node;
        const QString path = layerText(graph_, layer);
        node.name = layerTail(path, above);
        node.layer = layer;
        if (const auto own = items_.find(layer); own != items_.end()) addItems(node, own->second);
        for (const core::LayerIndex part : parts_[layer]) adopt(node, layerNode(part, path));
        finish(node);
        if (node.children.size() == 1 && node.children[0].item < 0) {
            LiveNode only = std::move(node.children[0]);
            only.name = layerTail(layerText(graph_, only.layer), above);
            return only;
        }
        return node;
    }
    QString groupOf(const LiveItem& item) const {
        if (!graph_.layers.empty()) return QObject::tr("(no layer)");
        if (item.band != kUnknownBand && item.storage != kNone)
            return document_.kindOf(item.storage);
        if (item.band != kUnknownBand) return document_.bands.name(item.band);
        return item.op == kNone ? QObject::tr("not known") : shortOpName(graph_.ops[item.op].name);
    }
    void finish(LiveNode& node) {
        std::stable_sort(node.children.begin(), node.children.end(),
                         [](const LiveNode& a, const LiveNode& b) { return a.bytes > b.bytes; });
        BandBytes shares{};
        for (const LiveNode& child : node.children) shares[child.band] += child.bytes;
        const auto most = std::max_element(shares.begin(), shares.end());
        if (*most > Bytes(0)) node.band = static_cast<Band>(most - shares.begin());
    }

    const Document& document_;
    const core::TrainingGraph& graph_;
    const LiveSet& set_;
    std::map<core::LayerIndex, std::vector<int>> items_;
    std::map<QString, std::vector<int>> loose_;  // of no layer, by what else is known
    std::map<core::LayerIndex, std::vector<core::LayerIndex>> parts_;
};

}  // namespace

LiveSet liveAt(const Document& document, const StepCurve& curve, std::size_t at) {
    const core::TrainingGraph& graph = document.graph;
    const Moment& moment = curve.moments[at];
    LiveSet set{at, moment.op, moment.begin, moment.total, {}};
    const auto now = static_cast<std::int32_t>(at);
    std::vector<LiveItem>
        arriving;  // constants that this op brings: they count where there is room
    for (const Lifetime& lifetime : curve.lifetimes) {
        if (lifetime.first > now || now > lifetime.last) continue;
        const core::Storage& storage = graph.storages[lifetime.storage];
        core::OpIndex op = storage.creator;
        if (op == kNone && graph.events.empty())  // an imported curve: in which it was allocated
            op = curve.moments[static_cast<std::size_t>(lifetime.first)].op;
        const bool ofOp = storage.layer == kNone && !storage.isConstant() && op != kNone;
        const core::LayerIndex layer =
            ofOp || (graph.events.empty() && op != kNone) ? graph.ops[op].layer : storage.layer;
        const LiveItem item{
            lifetime.storage, document.bands.of(storage), layer, op, storage.bytes, {}};
        const bool late =
            storage.isConstant() && !graph.events.empty() && lifetime.first == now && now > 0;
        (late ? arriving : set.items).push_back(item);
    }
    const BandBytes rest = unexplained(moment, set.items);
    for (const LiveItem& item : arriving)
        if (item.bytes <= rest[item.band]) set.items.push_back(item);
    addRest(graph, moment, set);
    std::stable_sort(set.items.begin(), set.items.end(),
                     [](const LiveItem& a, const LiveItem& b) { return a.bytes > b.bytes; });
    return set;
}

LiveNode liveTree(const Document& document, const LiveSet& set) {
    return LiveTreeMaker(document, set).make();
}

QString itemName(const Document& document, const LiveItem& item) {
    if (item.storage == kNone) return item.name;
    if (document.graph.storages[item.storage].isConstant() && item.op != kNone)
        return shortOpName(document.graph.ops[item.op].name);
    return storageName(document, item.storage);
}

QString storageName(const Document& document, core::StorageIndex index) {
    return document.bands.byLine() ? document.kindOf(index) : storageName(document.graph, index);
}

QString storageName(const core::TrainingGraph& graph, core::StorageIndex index) {
    const core::Storage& storage = graph.storages[index];
    if (storage.isConstant()) return categoryText(storage.category);
    const core::Op& op = graph.ops[storage.creator];
    int made = 0, mine = 0;
    for (const core::OpOutput& output : op.outputs) {
        if (!output.makesStorage) continue;
        if (graph.storageOf(output.tensor) == index) mine = made;
        ++made;
    }
    const QString name = shortOpName(op.name);
    return made > 1 ? QStringLiteral("%1 [%2]").arg(name).arg(mine) : name;
}

core::OpIndex lastUser(const core::Storage& storage) {
    core::OpIndex last = kNone;
    if (!storage.readers.empty()) last = std::max(last, storage.readers.back());
    if (!storage.writers.empty()) last = std::max(last, storage.writers.back());
    return last;
}

}  // namespace hw::viewer

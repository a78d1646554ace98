// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/models/layer_model.h"

#include <algorithm>
#include <cmath>

#include "viewer/models/live_set.h"
#include "viewer/models/table_text.h"

namespace hw::viewer {
namespace {

using core::Bytes;
using core::kNone;

const QString kAbsent = QStringLiteral("—");

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
             liveAt(graph_, document_.curve, document_.curve.peakMoment).items) {
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

LayerModel::LayerModel(QObject* parent) : QAbstractItemModel(parent) {}

void LayerModel::setDocument(DocumentPointer document, DocumentPointer other) {
    beginResetModel();
    document_ = std::move(document);
    other_ = std::move(other);
    otherLayers_.clear();
    if (other_)
        for (const LayerShare& share : layerTree(*other_).shares)
            if (share.layer != kNone)
                otherLayers_[layerText(other_->graph, share.layer)] = share.atPeak;
    tree_ = document_ ? layerTree(*document_) : LayerTree{};
    core::Nanoseconds slowest;
    Bytes largest;
    for (const LayerShare& share : tree_.shares) {
        slowest = std::max(slowest, share.forward + share.backward + share.other);
        largest = std::max({largest, share.atPeak, share.saved});
    }
    time_ = TimeFormat::fitting(slowest);
    time_.digits = std::max(1, time_.digits);
    size_ = SizeUnit::fitting(largest);
    endResetModel();
}

QModelIndex LayerModel::index(int row, int column, const QModelIndex& parent) const {
    if (!hasIndex(row, column, parent)) return {};
    const std::vector<int>& parts = parent.isValid() ? share(parent).parts : tree_.roots;
    return createIndex(row, column, static_cast<quintptr>(parts[static_cast<std::size_t>(row)]));
}

QModelIndex LayerModel::parent(const QModelIndex& child) const {
    if (!child.isValid()) return {};
    const int parent = share(child).parent;
    if (parent < 0) return {};
    const int above = tree_.shares[static_cast<std::size_t>(parent)].parent;
    const std::vector<int>& row =
        above < 0 ? tree_.roots : tree_.shares[static_cast<std::size_t>(above)].parts;
    const auto at = std::find(row.begin(), row.end(), parent) - row.begin();
    return createIndex(static_cast<int>(at), 0, static_cast<quintptr>(parent));
}

int LayerModel::rowCount(const QModelIndex& parent) const {
    if (!parent.isValid()) return static_cast<int>(tree_.roots.size());
    return parent.column() == 0 ? static_cast<int>(share(parent).parts.size()) : 0;
}
int LayerModel::columnCount(const QModelIndex&) const {
    return other_ ? ColumnCount : Other;
}

std::optional<Bytes> LayerModel::otherAtPeak(const LayerShare& share) const {
    const auto found = otherLayers_.find(pathOf(share));
    return found == otherLayers_.end() ? std::nullopt : std::optional(found->second);
}

QVariant LayerModel::headerData(int section, Qt::Orientation orientation, int role) const {
    if (orientation != Qt::Horizontal || section < 0 || section >= ColumnCount) return {};
    const auto column = static_cast<Column>(section);
    const bool raw = role == kRawRole;
    if (role == Qt::TextAlignmentRole)
        return static_cast<int>(
            (column == Layer || column == Type ? Qt::AlignLeft : Qt::AlignRight) |
            Qt::AlignVCenter);
    if (role == Qt::ToolTipRole && column == Saved)
        return tr("Made in the forward pass and read in the backward pass");
    if (role == Qt::ToolTipRole && column == Other && other_)
        return tr("At the peak of %1, the layer of the same path; those that it alone has are left "
                  "out")
            .arg(other_->name);
    if (role != Qt::DisplayRole && !raw) return {};
    switch (column) {
        case Layer:
            return tr("layer");
        case Type:
            return tr("type");
        case AtPeak:
            return raw ? tr("at the peak (bytes)") : tr("at the peak");
        case Share:
            return tr("share of the peak");
        case Saved:
            return raw ? tr("saved for backward (bytes)") : tr("saved for backward");
        case Forward:
            return raw ? tr("forward (ns)") : tr("forward");
        case Backward:
            return raw ? tr("backward (ns)") : tr("backward");
        case Time:
            return raw ? tr("op time (ns)") : tr("op time");
        case Ops:
            return tr("ops");
        case Other:
            return raw ? tr("at the other peak (bytes)") : tr("at the other peak");
        case Difference:
            return raw ? tr("difference (bytes)") : tr("difference");
        case ColumnCount:
            break;
    }
    return {};
}

QString LayerModel::pathOf(const LayerShare& share) const {
    return share.layer == kNone ? share.name : layerText(document_->graph, share.layer);
}

QVariant LayerModel::raw(const LayerShare& share, Column column) const {
    const auto number = [](auto figure) { return static_cast<qlonglong>(figure.count()); };
    switch (column) {
        case Layer:
            return pathOf(share);
        case AtPeak:
            return number(share.atPeak);
        case Share:
            return ratio(share.atPeak, document_->peak());
        case Saved:
            return number(share.saved);
        case Forward:
            return number(share.forward);
        case Backward:
            return number(share.backward);
        case Time:
            return number(share.forward + share.backward + share.other);
        case Ops:
            return static_cast<qlonglong>(share.ops);
        case Other:
        case Difference:
            if (const std::optional<Bytes> there = otherAtPeak(share))
                return number(column == Other ? *there : *there - share.atPeak);
            return {};
        default:
            return text(share, column);
    }
}

QString LayerModel::text(const LayerShare& share, Column column) const {
    const auto size = [&](Bytes bytes) {
        if (bytes == Bytes(0)) return kAbsent;
        const QString smallest = QString::number(std::pow(10.0, -size_.digits), 'f', size_.digits);
        return size_.number(bytes).toDouble() == 0
                   ? QStringLiteral("< %1 %2").arg(smallest, size_.name)
                   : size_.text(bytes);
    };
    const auto time = [&](core::Nanoseconds spent) {
        return spent == core::Nanoseconds(0) ? kAbsent : time_.text(spent);
    };
    switch (column) {
        case Layer:
            return share.name;
        case Type:
            return share.layer == kNone ? QString()
                                        : toQString(document_->graph.layers[share.layer].type);
        case AtPeak:
            return size(share.atPeak);
        case Share:
            return share.atPeak == Bytes(0)
                       ? kAbsent
                       : percentText(ratio(share.atPeak, document_->peak()), 1);
        case Saved:
            return size(share.saved);
        case Forward:
            return time(share.forward);
        case Backward:
            return time(share.backward);
        case Time:
            return time(share.forward + share.backward + share.other);
        case Ops:
            return QString::number(share.ops);
        case Other:
        case Difference: {
            const std::optional<Bytes> there = otherAtPeak(share);
            if (!there) return kAbsent;
            if (column == Other) return size(*there);
            const Bytes change = *there - share.atPeak;
            return (change > Bytes(0) ? QStringLiteral("+") : QString()) + size_.text(change);
        }
        case ColumnCount:
            break;
    }
    return {};
}

QVariant LayerModel::data(const QModelIndex& index, int role) const {
    if (!checkIndex(index, CheckIndexOption::IndexIsValid)) return {};
    const LayerShare& shown = share(index);
    const auto column = static_cast<Column>(index.column());
    switch (role) {
        case kShareRole:
            return ratio(shown.atPeak, document_->peak());
        case Qt::TextAlignmentRole:
            return headerData(index.column(), Qt::Horizontal, role);
        case Qt::ToolTipRole:
            return tr("%1: %2 of the peak, forward %3, backward %4")
                .arg(pathOf(shown), percentText(ratio(shown.atPeak, document_->peak()), 1),
                     time_.text(shown.forward), time_.text(shown.backward));
        case Qt::DisplayRole:
            return text(shown, column);
        case kRawRole:
            return raw(shown, column);
        default:
            return {};
    }
}

core::LayerIndex LayerModel::layer(const QModelIndex& index) const {
    return index.isValid() ? share(index).layer : kNone;
}
core::OpIndex LayerModel::firstOp(const QModelIndex& index) const {
    return index.isValid() ? share(index).firstOp : kNone;
}

QModelIndex LayerModel::indexOf(core::LayerIndex layer, int column) const {
    for (std::size_t i = 0; i < tree_.shares.size(); ++i) {
        const LayerShare& found = tree_.shares[i];
        if (found.layer != layer || layer == kNone) continue;
        const std::vector<int>& row =
            found.parent < 0 ? tree_.roots
                             : tree_.shares[static_cast<std::size_t>(found.parent)].parts;
        const auto at = std::find(row.begin(), row.end(), static_cast<int>(i)) - row.begin();
        return createIndex(static_cast<int>(at), column, static_cast<quintptr>(i));
    }
    return {};
}

}  // namespace hw::viewer

// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/models/layer_model.h"

#include <algorithm>
#include <cmath>

#include "viewer/models/table_text.h"

namespace hw::viewer {
namespace {

using core::Bytes;
using core::kNone;

const QString kAbsent = QStringLiteral("—");

}  // namespace

LayerModel::LayerModel(QObject* parent) : QAbstractItemModel(parent) {}

void LayerModel::setDocument(DocumentPointer document, DocumentPointer other) {
    beginResetModel();
    document_ = std::move(document);
    other_ = std::move(other);
    tree_ = document_ ? layerTree(*document_) : LayerTree{};
    otherLayers_.clear();
    if (document_ && other_) otherLayers_ = addLayersOf(*other_, *document_, tree_);
    core::Nanoseconds slowest;
    Bytes largest;
    for (const LayerShare& share : tree_.shares) {
        slowest = std::max(slowest, share.forward + share.backward + share.other);
        largest = std::max({largest, share.atPeak, share.saved});
    }
    for (const auto& [path, bytes] : otherLayers_) largest = std::max(largest, bytes);
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
        return tr("At the peak of %1, the layer of the same path").arg(other_->name);
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
    if (share.absent != kNone) return layerText(other_->graph, share.absent);
    return share.layer == kNone ? share.name : layerText(document_->graph, share.layer);
}

QString LayerModel::typeOf(const LayerShare& share) const {
    if (share.absent != kNone) return toQString(other_->graph.layers[share.absent].type);
    return share.layer == kNone ? QString() : toQString(document_->graph.layers[share.layer].type);
}

QString LayerModel::toolTip(const LayerShare& share) const {
    if (share.absent != kNone) return tr("%1: only in %2").arg(pathOf(share), other_->name);
    return tr("%1: %2 of the peak, forward %3, backward %4")
        .arg(pathOf(share), percentText(ratio(share.atPeak, document_->peak()), 1),
             time_.text(share.forward), time_.text(share.backward));
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
            if (const std::optional<Bytes> there = otherAtPeak(share)) return number(*there);
            return {};
        case Difference:
            return number(otherAtPeak(share).value_or(Bytes(0)) - share.atPeak);
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
            return typeOf(share);
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
            return share.absent != kNone ? kAbsent : QString::number(share.ops);
        case Other: {
            const std::optional<Bytes> there = otherAtPeak(share);
            return there ? size(*there) : kAbsent;
        }
        case Difference: {
            const std::optional<Bytes> there = otherAtPeak(share);
            const Bytes change = there.value_or(Bytes(0)) - share.atPeak;
            if (!there && change == Bytes(0)) return kAbsent;
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
            return toolTip(shown);
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

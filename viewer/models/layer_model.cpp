// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/models/layer_model.h"

#include <algorithm>

namespace hw::viewer {

std::vector<LayerShare> layerShares(const Document& document) {
    const core::TrainingGraph& graph = document.graph;
    std::vector<LayerShare> shares(graph.layers.size() + 1);  // the last one: no layer
    for (std::size_t i = 0; i < graph.layers.size(); ++i)
        shares[i].layer = static_cast<core::LayerIndex>(i);
    const auto of = [&](core::LayerIndex layer) -> LayerShare& {
        return layer == core::kNone ? shares.back() : shares[static_cast<std::size_t>(layer)];
    };
    for (std::size_t i = 0; i < graph.ops.size(); ++i) {
        LayerShare& share = of(graph.ops[i].layer);
        (graph.ops[i].phase == core::Phase::Backward ? share.backward : share.forward) +=
            graph.ops[i].time;
        if (share.firstOp == core::kNone) share.firstOp = static_cast<core::OpIndex>(i);
    }
    if (!document.curve.moments.empty()) {
        const std::size_t peak = document.curve.peakMoment;
        for (const core::StorageIndex s :
             largestResident(graph, document.curve, peak, graph.storages.size()))
            of(graph.storages[s].layer).atPeak += graph.storages[s].bytes;
        const core::OpIndex op = document.curve.moments[peak].op;
        if (op != core::kNone) of(graph.ops[op].layer).atPeak += graph.ops[op].workspace;
    }
    std::erase_if(shares, [](const LayerShare& share) {
        return share.atPeak == core::Bytes(0) && share.firstOp == core::kNone;
    });
    std::stable_sort(shares.begin(), shares.end(),
                     [](const LayerShare& a, const LayerShare& b) { return a.atPeak > b.atPeak; });
    return shares;
}

LayerModel::LayerModel(QObject* parent) : QAbstractTableModel(parent) {}

void LayerModel::setDocument(DocumentPointer document) {
    beginResetModel();
    document_ = std::move(document);
    shares_ = document_ ? layerShares(*document_) : std::vector<LayerShare>{};
    core::Nanoseconds slowest;
    for (const LayerShare& share : shares_)
        slowest = std::max(slowest, share.forward + share.backward);
    time_ = TimeFormat::fitting(std::min(slowest, core::Nanoseconds(999'000'000)));
    endResetModel();
}

int LayerModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : static_cast<int>(shares_.size());
}
int LayerModel::columnCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : ColumnCount;
}

QVariant LayerModel::headerData(int section, Qt::Orientation orientation, int role) const {
    if (orientation != Qt::Horizontal || section < 0 || section >= ColumnCount) return {};
    if (role == Qt::TextAlignmentRole)
        return static_cast<int>((section == Layer ? Qt::AlignLeft : Qt::AlignRight) |
                                Qt::AlignVCenter);
    if (role != Qt::DisplayRole) return {};
    switch (section) {
        case Layer:
            return tr("layer");
        case AtPeak:
            return tr("at the peak");
        default:
            return tr("op time");
    }
}

QVariant LayerModel::data(const QModelIndex& index, int role) const {
    if (!checkIndex(index, CheckIndexOption::IndexIsValid)) return {};
    const LayerShare& share = shares_[static_cast<std::size_t>(index.row())];
    if (role == kShareRole) return ratio(share.atPeak, document_->peak());
    if (role == Qt::TextAlignmentRole) return headerData(index.column(), Qt::Horizontal, role);
    const QString path =
        share.layer == core::kNone ? tr("(no layer)") : layerText(document_->graph, share.layer);
    if (role == Qt::ToolTipRole)
        return tr("%1: %2 of the peak, forward %3, backward %4")
            .arg(path, percentText(ratio(share.atPeak, document_->peak()), 1),
                 time_.text(share.forward), time_.text(share.backward));
    if (role != Qt::DisplayRole) return {};
    switch (index.column()) {
        case Layer:
            return path;
        case AtPeak:
            return document_->size.text(share.atPeak);
        default:
            return time_.text(share.forward + share.backward);
    }
}

core::OpIndex LayerModel::firstOp(int row) const {
    return row >= 0 && row < rowCount() ? shares_[static_cast<std::size_t>(row)].firstOp
                                        : core::kNone;
}

int LayerModel::rowOf(core::LayerIndex layer) const {
    const auto found = std::find_if(shares_.begin(), shares_.end(),
                                    [&](const LayerShare& share) { return share.layer == layer; });
    return found == shares_.end() ? -1 : static_cast<int>(found - shares_.begin());
}

}  // namespace hw::viewer

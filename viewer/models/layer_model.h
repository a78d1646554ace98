// SPDX-License-Identifier: GPL-3.0-or-later
// Layers by what they hold at the peak of the recorded step.
#pragma once

#include <QAbstractTableModel>
#include <vector>

#include "viewer/models/document.h"

namespace hw::viewer {

/// What one layer holds while the peak is reached, and the time of its ops.
struct LayerShare {
    core::LayerIndex layer = core::kNone;  // kNone: no layer recorded
    core::Bytes atPeak;
    core::Nanoseconds forward, backward;  // optimizer and unknown phases count as forward
    core::OpIndex firstOp = core::kNone;
};

/// One row a layer that ran an op or holds bytes at the peak, the largest first. Workspace at the
/// peak belongs to the layer of the op that runs.
std::vector<LayerShare> layerShares(const Document& document);

class LayerModel : public QAbstractTableModel {
    Q_OBJECT
public:
    enum Column { Layer, AtPeak, Time, ColumnCount };
    static constexpr int kShareRole = Qt::UserRole;  // of the peak, 0..1

    explicit LayerModel(QObject* parent = nullptr);
    void setDocument(DocumentPointer document);

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

    core::OpIndex firstOp(int row) const;
    int rowOf(core::LayerIndex layer) const;  // -1: none

private:
    DocumentPointer document_;
    std::vector<LayerShare> shares_;
    TimeFormat time_;  // by the slowest layer
};

}  // namespace hw::viewer

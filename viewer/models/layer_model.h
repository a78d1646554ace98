// SPDX-License-Identifier: GPL-3.0-or-later
// The tree of layers, each with its parts: what it holds at the peak, what it saves for the
// backward pass, and its time.
#pragma once

#include <QAbstractItemModel>
#include <map>
#include <optional>
#include <vector>

#include "viewer/models/layer_tree.h"

namespace hw::viewer {

class LayerModel : public QAbstractItemModel {
    Q_OBJECT
public:
    enum Column {
        Layer,
        Type,
        AtPeak,
        Share,
        Saved,
        Forward,
        Backward,
        Time,
        Ops,
        Other,
        Difference,
        ColumnCount
    };
    static constexpr int kShareRole = Qt::UserRole + 1;  // of the peak, 0..1

    explicit LayerModel(QObject* parent = nullptr);
    /// `other`: a session whose layers of the same paths are shown beside it in two more columns;
    /// null: none.
    void setDocument(DocumentPointer document, DocumentPointer other = nullptr);

    QModelIndex index(int row, int column, const QModelIndex& parent = {}) const override;
    QModelIndex parent(const QModelIndex& child) const override;
    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

    const LayerTree& tree() const { return tree_; }
    core::LayerIndex layer(const QModelIndex& index) const;
    core::OpIndex firstOp(const QModelIndex& index) const;
    QModelIndex indexOf(core::LayerIndex layer, int column = 0) const;

private:
    const LayerShare& share(const QModelIndex& index) const {
        return tree_.shares[index.internalId()];
    }
    QVariant raw(const LayerShare& share, Column column) const;
    QString text(const LayerShare& share, Column column) const;
    QString pathOf(const LayerShare& share) const;
    QString typeOf(const LayerShare& share) const;
    QString toolTip(const LayerShare& share) const;
    /// At the peak of the other; none: it has no such layer.
    std::optional<core::Bytes> otherAtPeak(const LayerShare& share) const;

    DocumentPointer document_;
    LayerTree tree_;
    DocumentPointer other_;
    std::map<QString, core::Bytes> otherLayers_;  // at its peak, by path
    TimeFormat time_;                             // by the slowest layer
    SizeUnit size_;                               // by the largest figure
};

}  // namespace hw::viewer

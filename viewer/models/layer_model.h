// SPDX-License-Identifier: GPL-3.0-or-later
// The tree of layers, each with its parts: what it holds at the peak, what it saves for the
// backward pass, and its time.
#pragma once

#include <QAbstractItemModel>
#include <map>
#include <optional>
#include <vector>

#include "viewer/models/document.h"

namespace hw::viewer {

/// A layer with all its parts. Workspace at the peak belongs to the layer of the op that runs.
struct LayerShare {
    core::LayerIndex layer = core::kNone;  // kNone: what belongs to no layer
    int parent = -1;                       // index into the shares
    std::vector<int> parts;                // the largest at the peak first
    QString name;                          // the end of its path that its parent has not
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

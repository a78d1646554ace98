// SPDX-License-Identifier: GPL-3.0-or-later
// The tensors that are live at the peak of the recorded step, of the plan, or of both.
#pragma once

#include <QAbstractTableModel>
#include <vector>

#include "viewer/models/live_set.h"

namespace hw::viewer {

class LiveTensorModel : public QAbstractTableModel {
    Q_OBJECT
public:
    enum Column { Place, Shape, Dtype, Size, LiveAt, MadeBy, Line, LastUse, ColumnCount };
    static constexpr int kBandRole = Qt::UserRole + 1;  // Band as an int, of the document's

    explicit LiveTensorModel(QObject* parent = nullptr);
    /// `planned` may be null: no plan.
    void setSets(DocumentPointer document, const LiveSet& recorded, const LiveSet* planned);

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

    const DocumentPointer& document() const { return document_; }
    const LiveItem& item(int row) const { return rows_[static_cast<std::size_t>(row)].item; }
    /// Whether anything stands in the column MadeBy.
    bool knowsMakers() const;
    int rowOf(core::StorageIndex storage) const;  // -1: it is live at neither peak

private:
    struct Row {
        LiveItem item;
        bool recorded = false, planned = false;
    };
    QString text(const Row& row, Column column) const;
    QVariant raw(const Row& row, Column column) const;
    QString innermostFrame(core::StorageIndex storage) const;

    DocumentPointer document_;
    SizeUnit size_;  // by the largest row
    std::vector<Row> rows_;
};

}  // namespace hw::viewer

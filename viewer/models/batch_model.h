// SPDX-License-Identifier: GPL-3.0-or-later
// The table of planners by the largest batch that they reach.
#pragma once

#include <QAbstractTableModel>

#include "viewer/models/batch_study.h"
#include "viewer/models/format.h"

namespace hw::viewer {

class BatchModel : public QAbstractTableModel {
    Q_OBJECT
public:
    enum Column {
        Planner,
        Largest,
        Times,
        Peak,
        ExtraTime,
        Items,
        Fastest,
        MostItems,
        ColumnCount
    };
    using QAbstractTableModel::QAbstractTableModel;

    /// `recorded`: the largest recorded size.
    void setStudy(BatchStudy study, std::int64_t recorded);
    const planners::LargestSize& at(int row) const {
        return study_.rows[static_cast<std::size_t>(row)];
    }

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    QVariant raw(const planners::LargestSize& row, Column column) const;
    QString text(const planners::LargestSize& row, Column column) const;

    BatchStudy study_;
    std::int64_t recorded_ = 1;
    SizeUnit unit_;
};

}  // namespace hw::viewer

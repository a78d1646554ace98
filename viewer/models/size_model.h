// SPDX-License-Identifier: GPL-3.0-or-later
// The table of recorded input sizes: estimated beside recorded, and the plan that each one gets.
#pragma once

#include <QAbstractTableModel>

#include "viewer/models/format.h"
#include "viewer/models/size_study.h"

namespace hw::viewer {

class SizeModel : public QAbstractTableModel {
    Q_OBJECT
public:
    enum Column {
        Input,
        Step,
        RecordedPeak,
        EstimatedPeak,
        Error,
        Dropped,
        PlannedPeak,
        ExtraTime,
        ColumnCount
    };
    using QAbstractTableModel::QAbstractTableModel;

    void setStudy(SizeStudy study, const SizeUnit& unit);
    const SizeRow& at(int row) const { return study_.rows[static_cast<std::size_t>(row)]; }

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    QVariant raw(const SizeRow& row, Column column) const;
    QString text(const SizeRow& row, Column column) const;

    SizeStudy study_;
    SizeUnit unit_, input_;
};

}  // namespace hw::viewer

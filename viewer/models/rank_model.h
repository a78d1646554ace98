// SPDX-License-Identifier: GPL-3.0-or-later
// The ranks of a session side by side, each with its last step.
#pragma once

#include <QAbstractTableModel>
#include <vector>

#include "core/ranks/rank_steps.h"
#include "viewer/models/format.h"

namespace hw::viewer {

struct RankRow {
    int rank = 0;
    QString host;
    std::int64_t step = 0;
    core::Bytes peak;
    core::Nanoseconds time;     // of its ops
    core::Nanoseconds waiting;  // for others, see core/ranks/step_time.h
    bool decides = false;       // how long the step takes
};

/// By rank; empty where the session has one rank only. Errors: BadInput.
core::Result<std::vector<RankRow>> loadRankRows(const std::string& path);

class RankModel : public QAbstractTableModel {
    Q_OBJECT
public:
    enum Column { Rank, Host, Peak, Room, Time, Waiting, ColumnCount };
    static constexpr int kShareRole = Qt::UserRole + 1;  // of the highest peak, of the step's time
    using QAbstractTableModel::QAbstractTableModel;

    void setRows(std::vector<RankRow> rows);
    const std::vector<RankRow>& rows() const { return rows_; }
    /// The row whose rank made a step that is in the table; invalid: none did.
    QModelIndex indexOf(std::int64_t step) const;

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    QVariant raw(const RankRow& row, Column column) const;
    QString text(const RankRow& row, Column column) const;

    std::vector<RankRow> rows_;
    core::Bytes highest_;
    core::Nanoseconds longest_;  // ops and waiting
    SizeUnit size_;
    TimeFormat time_;
};

}  // namespace hw::viewer

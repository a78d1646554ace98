// SPDX-License-Identifier: GPL-3.0-or-later
// The table of plans: predicted beside measured.
#pragma once

#include <QAbstractTableModel>
#include <vector>

#include "viewer/models/workspace.h"

namespace hw::viewer {

class CompareModel : public QAbstractTableModel {
    Q_OBJECT
public:
    enum Column {
        Planner,
        Budget,
        PredictedPeak,
        MeasuredPeak,
        Overhead,
        MeasuredOverhead,
        Gap,
        PlanningTime,
        Results,
        ColumnCount
    };
    /// A number (or text) to sort by; an absent figure sorts last.
    static constexpr int kSortRole = Qt::UserRole;
    /// True for the row of the plan that is drawn over the recorded curve.
    static constexpr int kActiveRole = Qt::UserRole + 1;
    /// True for a plan that was made for another budget than the present one.
    static constexpr int kOtherBudgetRole = Qt::UserRole + 2;

    explicit CompareModel(Workspace& workspace, QObject* parent = nullptr);

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

    PlanPointer planAt(int row) const;
    int activeRow() const;  // of the plan that is drawn; -1: none of these

private:
    QString name(const PlanRow& row) const;
    QString text(const PlanRow& row, Column column) const;
    QVariant sortKey(const PlanRow& row, Column column) const;
    void reload();

    Workspace& workspace_;
    std::vector<PlanRow> rows_;
};

}  // namespace hw::viewer

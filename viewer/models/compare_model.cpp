// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/models/compare_model.h"

#include <algorithm>
#include <limits>

namespace hw::viewer {
namespace {

const QString kAbsent = QStringLiteral("—");

QString originText(PlanEntry::Origin origin) {
    switch (origin) {
        case PlanEntry::Origin::Planner:
            return CompareModel::tr("computed here, under the judge");
        case PlanEntry::Origin::File:
            return CompareModel::tr("from a plan file, judged again");
        case PlanEntry::Origin::Session:
            return CompareModel::tr("stored in the session, judged again");
    }
    return {};
}

// Of a planner that has no plan.
QString statusText(planners::PlanStatus status) {
    switch (status) {
        case planners::PlanStatus::Ok:
            break;
        case planners::PlanStatus::Infeasible:
            return CompareModel::tr("does not fit");
        case planners::PlanStatus::Thrash:
            return CompareModel::tr("thrashes");
        case planners::PlanStatus::TimeLimit:
            return CompareModel::tr("none in time");
        case planners::PlanStatus::Cancelled:
            return CompareModel::tr("stopped");
    }
    return kAbsent;
}

QString resultsText(const PlanEntry& plan) {
    if (plan.outputsCompared == 0)  // training has nothing to compare with
        return plan.measuredPeak ? kAbsent : CompareModel::tr("not run");
    if (plan.outputsDifferent == 0) return CompareModel::tr("identical");
    return CompareModel::tr("%1 differ").arg(plan.outputsDifferent);
}

}  // namespace

CompareModel::CompareModel(Workspace& workspace, QObject* parent)
    : QAbstractTableModel(parent),
      workspace_(workspace),
      rows_(workspace.plans().rows(workspace.budget())) {
    connect(&workspace, &Workspace::plansChanged, this, &CompareModel::reload);
    connect(&workspace, &Workspace::documentChanged, this, &CompareModel::reload);
    connect(&workspace.active(), &ActivePlan::planChanged, this, [this] {
        if (!rows_.empty())
            emit dataChanged(index(0, 0), index(rowCount() - 1, ColumnCount - 1), {kActiveRole});
    });
}

void CompareModel::reload() {
    std::vector<PlanRow> rows = workspace_.plans().rows(workspace_.budget());
    const auto same = [](const PlanRow& a, const PlanRow& b) {
        return a.planner == b.planner && a.plan == b.plan;
    };
    if (std::equal(rows.begin(), rows.end(), rows_.begin(), rows_.end(), same)) return;
    if (rows.size() == rows_.size()) {  // keeps the selection while results arrive
        rows_ = std::move(rows);
        emit dataChanged(index(0, 0), index(rowCount() - 1, ColumnCount - 1));
        return;
    }
    beginResetModel();
    rows_ = std::move(rows);
    endResetModel();
}

int CompareModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : static_cast<int>(rows_.size());
}
int CompareModel::columnCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : ColumnCount;
}

PlanPointer CompareModel::planAt(int row) const {
    return row >= 0 && row < rowCount() ? rows_[static_cast<std::size_t>(row)].plan : nullptr;
}

QVariant CompareModel::headerData(int section, Qt::Orientation orientation, int role) const {
    if (orientation != Qt::Horizontal || section < 0 || section >= ColumnCount) return {};
    const auto column = static_cast<Column>(section);
    const bool left = column == Planner || column == Results;
    if (role == Qt::TextAlignmentRole)
        return static_cast<int>((left ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter);
    if (role == Qt::ToolTipRole) {
        if (column == Overhead) return tr("Step time of the plan over the recorded step time");
        if (column == PredictedPeak) return tr("Highest bytes of the plan, as the judge predicts");
        if (column == MeasuredPeak) return tr("Highest bytes in the latest run of the plan");
        if (column == MeasuredOverhead)
            return tr("Step time in the latest run of the plan over that of its unplanned passes");
        if (column == Gap)
            return tr("(plan time − proven lower bound) / recorded time, in percentage points");
        if (column == Results) return tr("Bytes of every output, compared with the unplanned run");
        return {};
    }
    if (role != Qt::DisplayRole) return {};
    switch (column) {
        case Planner:
            return tr("planner");
        case Budget:
            return tr("budget");
        case PredictedPeak:
            return tr("peak");
        case Overhead:
            return tr("extra time");
        case Gap:
            return tr("gap (points)");
        case PlanningTime:
            return tr("planning");
        case MeasuredPeak:
            return tr("measured peak");
        case MeasuredOverhead:
            return tr("measured");
        case Results:
            return tr("results");
        case ColumnCount:
            break;
    }
    return {};
}

int CompareModel::activeRow() const {
    for (int row = 0; row < rowCount(); ++row)
        if (index(row, 0).data(kActiveRole).toBool()) return row;
    return -1;
}

QVariant CompareModel::data(const QModelIndex& index, int role) const {
    if (!checkIndex(index, CheckIndexOption::IndexIsValid)) return {};
    const PlanRow& row = rows_[static_cast<std::size_t>(index.row())];
    const auto column = static_cast<Column>(index.column());
    switch (role) {
        case Qt::DisplayRole:
            return text(row, column);
        case kSortRole:
            return sortKey(row, column);
        case kActiveRole:
            return row.plan && row.plan == workspace_.active().plan();
        case kOtherBudgetRole:
            return row.plan && row.plan->budget != workspace_.budget();
        case Qt::TextAlignmentRole:
            return headerData(index.column(), Qt::Horizontal, Qt::TextAlignmentRole);
        case Qt::ToolTipRole:
            if (!row.plan) return tr("being computed");
            if (!row.plan->reason.isEmpty()) return row.plan->reason;
            return tr("budget %1 of the recorded peak, %2")
                .arg(percentText(ratio(row.plan->budget, workspace_.document()->peak()), 1),
                     originText(row.plan->origin));
        default:
            return {};
    }
}

/// Two plans of one planner are told apart by where they come from.
QString CompareModel::name(const PlanRow& row) const {
    const bool alone = std::ranges::count(rows_, row.planner, &PlanRow::planner) == 1;
    if (alone || !row.plan || row.plan->origin == PlanEntry::Origin::Planner) return row.planner;
    return row.plan->origin == PlanEntry::Origin::File ? tr("%1 (file)").arg(row.planner)
                                                       : tr("%1 (stored)").arg(row.planner);
}

QString CompareModel::text(const PlanRow& row, Column column) const {
    if (column == Planner) return name(row);
    const DocumentPointer& document = workspace_.document();
    const SizeUnit& size = document->size;
    if (!row.plan) return column == Overhead ? tr("computing…") : QString();
    const PlanEntry& plan = *row.plan;
    switch (column) {
        case Budget:
            return size.text(plan.budget);
        case PredictedPeak:
            return plan.ok() ? size.text(plan.peak) : kAbsent;
        case Overhead:
            return plan.ok() ? overheadText(plan.overhead) : statusText(plan.status);
        case Gap: {
            const std::optional<double> gap = workspace_.plans().gap(row.plan);
            return gap ? QString::number(*gap * 100, 'f', 2) : kAbsent;
        }
        case PlanningTime: {
            const std::optional<double> seconds = workspace_.plans().planningSeconds(row.plan);
            return seconds ? secondsText(*seconds) : kAbsent;
        }
        case MeasuredPeak:
            return plan.measuredPeak ? size.text(*plan.measuredPeak) : kAbsent;
        case MeasuredOverhead:
            return plan.measuredOverhead ? overheadText(*plan.measuredOverhead) : kAbsent;
        case Results:
            return plan.ok() ? resultsText(plan) : kAbsent;
        case Planner:
        case ColumnCount:
            break;
    }
    return {};
}

QVariant CompareModel::sortKey(const PlanRow& row, Column column) const {
    constexpr double kLast = std::numeric_limits<double>::infinity();
    if (column == Planner) return row.planner;
    if (column == Results) return text(row, column);
    if (!row.plan) return kLast;
    const PlanEntry& plan = *row.plan;
    const auto bytes = [](core::Bytes size) { return static_cast<double>(size.count()); };
    switch (column) {
        case Budget:
            return bytes(plan.budget);
        case PredictedPeak:
            return plan.ok() ? bytes(plan.peak) : kLast;
        case Overhead:
            return plan.ok() ? plan.overhead : kLast;
        case Gap:
            return workspace_.plans().gap(row.plan).value_or(kLast);
        case PlanningTime:
            return workspace_.plans().planningSeconds(row.plan).value_or(kLast);
        case MeasuredPeak:
            return plan.measuredPeak ? bytes(*plan.measuredPeak) : kLast;
        case MeasuredOverhead:
            return plan.measuredOverhead.value_or(kLast);
        default:
            return {};
    }
}

}  // namespace hw::viewer

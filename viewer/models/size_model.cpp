// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/models/size_model.h"

#include "viewer/models/table_text.h"

namespace hw::viewer {
namespace {

double errorOf(const SizeRow& row) {
    return ratio(row.estimatedPeak, row.recordedPeak) - 1;
}

}  // namespace

void SizeModel::setStudy(SizeStudy study, const SizeUnit& unit) {
    beginResetModel();
    study_ = std::move(study);
    unit_ = unit;
    input_ = SizeUnit::fitting(
        core::Bytes(study_.rows.empty() ? 0 : static_cast<std::int64_t>(study_.rows.back().bytes)));
    endResetModel();
}

int SizeModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : static_cast<int>(study_.rows.size());
}

int SizeModel::columnCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : ColumnCount;
}

QVariant SizeModel::raw(const SizeRow& row, Column column) const {
    switch (column) {
        case Input:
            return row.bytes;
        case Step:
            return QVariant::fromValue(row.step);
        case RecordedPeak:
            return QVariant::fromValue(row.recordedPeak.count());
        case EstimatedPeak:
            return QVariant::fromValue(row.estimatedPeak.count());
        case Error:
            return errorOf(row);
        case Dropped:
            return row.planned ? QVariant(row.droppedLayers) : QVariant();
        case PlannedPeak:
            return row.planned ? QVariant::fromValue(row.plannedPeak.count()) : QVariant();
        case ExtraTime:
            return row.planned ? QVariant(ratio(row.plannedTime, row.recordedTime)) : QVariant();
        case ColumnCount:
            break;
    }
    return {};
}

QString SizeModel::text(const SizeRow& row, Column column) const {
    switch (column) {
        case Input:
            return input_.text(core::Bytes(static_cast<std::int64_t>(row.bytes)));
        case Step:
            return QString::number(row.step);
        case RecordedPeak:
            return unit_.text(row.recordedPeak);
        case EstimatedPeak:
            return unit_.text(row.estimatedPeak);
        case Error:
            return overheadText(1 + errorOf(row));
        case Dropped:
            return !row.planned ? tr("no plan fits")
                                : tr("%1 of %2").arg(row.droppedLayers).arg(study_.layers);
        case PlannedPeak:
            return row.planned ? unit_.text(row.plannedPeak) : QString();
        case ExtraTime:
            return row.planned ? overheadText(ratio(row.plannedTime, row.recordedTime)) : QString();
        case ColumnCount:
            break;
    }
    return {};
}

QVariant SizeModel::data(const QModelIndex& index, int role) const {
    if (!index.isValid()) return {};
    const auto column = static_cast<Column>(index.column());
    if (role == Qt::TextAlignmentRole) return QVariant(Qt::AlignRight | Qt::AlignVCenter);
    if (role == kRawRole) return raw(at(index.row()), column);
    return role == Qt::DisplayRole ? text(at(index.row()), column) : QVariant();
}

QVariant SizeModel::headerData(int section, Qt::Orientation orientation, int role) const {
    if (orientation != Qt::Horizontal || section >= ColumnCount) return {};
    if (role == Qt::TextAlignmentRole) return QVariant(Qt::AlignRight | Qt::AlignVCenter);
    if (role == kRawRole) {
        const char* const units[] = {
            "input_bytes",    "step",           "recorded_peak_bytes", "estimated_peak_bytes",
            "estimate_error", "layers_dropped", "planned_peak_bytes",  "overhead"};
        return QString::fromLatin1(units[section]);
    }
    if (role != Qt::DisplayRole) return {};
    const QString names[] = {tr("inputs"),    tr("step"),      tr("recorded peak"),
                             tr("estimated"), tr("off by"),    tr("layers dropped"),
                             tr("plan peak"), tr("extra time")};
    return names[section];
}

}  // namespace hw::viewer

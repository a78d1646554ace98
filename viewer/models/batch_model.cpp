// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/models/batch_model.h"

#include "viewer/models/table_text.h"

namespace hw::viewer {
namespace {

QString itemsText(double itemsPerSecond) {
    return QString::number(itemsPerSecond, 'f', itemsPerSecond < 100 ? 1 : 0);
}

double speedAt(const planners::LargestSize& row) {
    return planners::itemsPerSecond(*row.size, row.outcome->time);
}

}  // namespace

void BatchModel::setStudy(BatchStudy study, std::int64_t recorded) {
    beginResetModel();
    study_ = std::move(study);
    recorded_ = recorded;
    unit_ = SizeUnit::fitting(study_.budget);
    endResetModel();
}

int BatchModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : static_cast<int>(study_.rows.size());
}

int BatchModel::columnCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : ColumnCount;
}

QVariant BatchModel::raw(const planners::LargestSize& row, Column column) const {
    if (column == Planner) return toQString(row.planner);
    if (!row.size || !row.outcome) return {};
    switch (column) {
        case Largest:
            return QVariant::fromValue(*row.size);
        case Times:
            return static_cast<double>(*row.size) / static_cast<double>(recorded_);
        case Peak:
            return QVariant::fromValue(row.outcome->peak.count());
        case ExtraTime:
            return row.outcome->overhead;
        case Items:
            return row.timed ? QVariant(speedAt(row)) : QVariant();
        case Fastest:
            return row.fastest ? QVariant::fromValue(*row.fastest) : QVariant();
        case MostItems:
            return row.fastest ? QVariant(row.itemsPerSecond) : QVariant();
        case Planner:
        case ColumnCount:
            break;
    }
    return {};
}

QString BatchModel::text(const planners::LargestSize& row, Column column) const {
    if (column == Planner) return toQString(row.planner);
    if (!row.size || !row.outcome) return column == Largest ? tr("none fits") : QString();
    switch (column) {
        case Largest:
            return row.timedOut ? tr("%1 or more").arg(*row.size) : QString::number(*row.size);
        case Times:
            return QStringLiteral("× %1").arg(
                static_cast<double>(*row.size) / static_cast<double>(recorded_), 0, 'f', 2);
        case Peak:
            return unit_.text(row.outcome->peak);
        case ExtraTime:
            return overheadText(row.outcome->overhead);
        case Items:
            return row.timed ? itemsText(speedAt(row)) : tr("not told");
        case Fastest:
            return row.fastest ? QString::number(*row.fastest) : QString();
        case MostItems:
            return row.fastest ? itemsText(row.itemsPerSecond) : QString();
        case Planner:
        case ColumnCount:
            break;
    }
    return {};
}

QVariant BatchModel::data(const QModelIndex& index, int role) const {
    if (!index.isValid()) return {};
    const auto column = static_cast<Column>(index.column());
    if (role == Qt::TextAlignmentRole)
        return QVariant((column == Planner ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter);
    if (role == kRawRole) return raw(at(index.row()), column);
    return role == Qt::DisplayRole ? text(at(index.row()), column) : QVariant();
}

QVariant BatchModel::headerData(int section, Qt::Orientation orientation, int role) const {
    if (orientation != Qt::Horizontal || section >= ColumnCount) return {};
    if (role == Qt::TextAlignmentRole)
        return QVariant((section == Planner ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter);
    if (role == kRawRole) {
        const char* const names[] = {
            "planner",  "largest_batch",    "of_recorded",   "peak_bytes",
            "overhead", "items_per_second", "fastest_batch", "fastest_items_per_second"};
        return QString::fromLatin1(names[section]);
    }
    if (role != Qt::DisplayRole) return {};
    const QString names[] = {tr("planner"),    tr("largest batch"), tr("of recorded"),
                             tr("peak"),       tr("extra time"),    tr("items/s"),
                             tr("best batch"), tr("items/s there")};
    return names[section];
}

}  // namespace hw::viewer

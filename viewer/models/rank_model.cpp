// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/models/rank_model.h"

#include <algorithm>

#include "core/import/import.h"
#include "viewer/models/table_text.h"

namespace hw::viewer {

core::Result<std::vector<RankRow>> loadRankRows(const std::string& path) {
    const auto session = core::openAny(path);
    if (!session) return session.error();
    const auto ranks = core::loadRanks(*session);
    if (!ranks) return ranks.error();
    std::vector<RankRow> rows;
    if (ranks->size() < 2) return rows;
    const core::StepTime time = core::recordedTime(*ranks);
    for (std::size_t r = 0; r < ranks->size(); ++r) {
        const core::LoadedRank& rank = (*ranks)[r];
        rows.push_back({rank.rank, toQString(rank.host), rank.graph.sessionStep, rank.baseline.peak,
                        rank.baseline.time, time.ranks[r].waiting, r == time.decides});
    }
    return rows;
}

void RankModel::setRows(std::vector<RankRow> rows) {
    beginResetModel();
    rows_ = std::move(rows);
    highest_ = {}, longest_ = {};
    for (const RankRow& row : rows_) {
        highest_ = std::max(highest_, row.peak);
        longest_ = std::max(longest_, row.time + row.waiting);
    }
    size_ = SizeUnit::fitting(highest_);
    time_ = TimeFormat::fitting(longest_);
    endResetModel();
}

QModelIndex RankModel::indexOf(std::int64_t step) const {
    const auto at = std::find_if(rows_.begin(), rows_.end(),
                                 [&](const RankRow& row) { return row.step == step; });
    return at == rows_.end() ? QModelIndex() : index(static_cast<int>(at - rows_.begin()), 0);
}

int RankModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : static_cast<int>(rows_.size());
}

int RankModel::columnCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : ColumnCount;
}

QVariant RankModel::raw(const RankRow& row, Column column) const {
    switch (column) {
        case Rank:
            return row.rank;
        case Host:
            return row.host;
        case Peak:
            return QVariant::fromValue(row.peak.count());
        case Room:
            return QVariant::fromValue((highest_ - row.peak).count());
        case Time:
            return QVariant::fromValue(row.time.count());
        case Waiting:
            return QVariant::fromValue(row.waiting.count());
        case ColumnCount:
            break;
    }
    return {};
}

QString RankModel::text(const RankRow& row, Column column) const {
    switch (column) {
        case Rank:
            return row.decides ? tr("%1 · decides").arg(row.rank) : QString::number(row.rank);
        case Host:
            return row.host;
        case Peak:
            return size_.text(row.peak);
        case Room:
            return size_.text(highest_ - row.peak);
        case Time:
            return time_.text(row.time);
        case Waiting:
            return time_.text(row.waiting);
        case ColumnCount:
            break;
    }
    return {};
}

QVariant RankModel::data(const QModelIndex& index, int role) const {
    if (!index.isValid()) return {};
    const auto column = static_cast<Column>(index.column());
    const RankRow& row = rows_[static_cast<std::size_t>(index.row())];
    if (role == Qt::TextAlignmentRole)
        return QVariant((column <= Host ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter);
    if (role == kRawRole) return raw(row, column);
    if (role == kShareRole && column == Peak) return ratio(row.peak, highest_);
    if (role == kShareRole && column == Waiting) return ratio(row.waiting, longest_);
    if (role == Qt::ToolTipRole && row.decides)
        return tr("It waits least: the others wait for it, and the step takes as long as it does");
    return role == Qt::DisplayRole ? text(row, column) : QVariant();
}

QVariant RankModel::headerData(int section, Qt::Orientation orientation, int role) const {
    if (orientation != Qt::Horizontal || section >= ColumnCount) return {};
    if (role == Qt::TextAlignmentRole)
        return QVariant((section <= Host ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter);
    if (role == kRawRole) {
        const char* const names[] = {"rank",       "host",    "peak_bytes",
                                     "room_bytes", "time_ns", "waiting_ns"};
        return QString::fromLatin1(names[section]);
    }
    if (role == Qt::ToolTipRole && section == Room)
        return tr("As much less than the rank with the highest peak");
    if (role != Qt::DisplayRole) return {};
    const QString names[] = {tr("rank"), tr("host"),     tr("peak"),
                             tr("room"), tr("ops take"), tr("waits")};
    return names[section];
}

}  // namespace hw::viewer

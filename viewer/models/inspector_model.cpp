// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/models/inspector_model.h"

#include <utility>

#include "viewer/models/table_text.h"

namespace hw::viewer {

InspectorModel::InspectorModel(QObject* parent) : QAbstractItemModel(parent) {}

void InspectorModel::setGroups(std::vector<FactGroup> groups) {
    beginResetModel();
    groups_ = std::move(groups);
    endResetModel();
}

// The id of a group's row is 0, that of a fact's row its group's row + 1.
QModelIndex InspectorModel::index(int row, int column, const QModelIndex& parent) const {
    if (!hasIndex(row, column, parent)) return {};
    return createIndex(row, column,
                       parent.isValid() ? static_cast<quintptr>(parent.row()) + 1 : quintptr{0});
}

QModelIndex InspectorModel::parent(const QModelIndex& child) const {
    if (!child.isValid() || child.internalId() == 0) return {};
    return createIndex(static_cast<int>(child.internalId() - 1), 0, quintptr{0});
}

int InspectorModel::rowCount(const QModelIndex& parent) const {
    if (!parent.isValid()) return static_cast<int>(groups_.size());
    if (parent.internalId() != 0 || parent.column() != 0) return 0;
    return static_cast<int>(groups_[static_cast<std::size_t>(parent.row())].facts.size());
}

int InspectorModel::columnCount(const QModelIndex&) const {
    return ColumnCount;
}

const Fact* InspectorModel::fact(const QModelIndex& index) const {
    if (!index.isValid() || index.internalId() == 0) return nullptr;
    return &groups_[index.internalId() - 1].facts[static_cast<std::size_t>(index.row())];
}

QVariant InspectorModel::headerData(int section, Qt::Orientation orientation, int role) const {
    if (orientation != Qt::Horizontal || section < 0 || section >= ColumnCount) return {};
    if (role == Qt::TextAlignmentRole) return static_cast<int>(Qt::AlignLeft | Qt::AlignVCenter);
    if (role != Qt::DisplayRole && role != kRawRole) return {};
    return section == Name ? tr("what") : tr("value");
}

QVariant InspectorModel::data(const QModelIndex& index, int role) const {
    if (!checkIndex(index, CheckIndexOption::IndexIsValid)) return {};
    const Fact* one = fact(index);
    if (role == kLinkRole) return one && one->target;
    if (role == Qt::TextAlignmentRole) return static_cast<int>(Qt::AlignLeft | Qt::AlignTop);
    if (role == Qt::ToolTipRole) return one ? one->value : QString();
    if (role != Qt::DisplayRole && role != kRawRole) return {};
    if (!one)
        return index.column() == Name ? groups_[static_cast<std::size_t>(index.row())].title
                                      : QString();
    return index.column() == Name ? one->name : one->value;
}

Target InspectorModel::target(const QModelIndex& index) const {
    const Fact* one = fact(index);
    return one ? one->target : Target{};
}

}  // namespace hw::viewer

// SPDX-License-Identifier: GPL-3.0-or-later
// What is known of the selection as a tree: groups, and in them facts, each a name and a value.
#pragma once

#include <QAbstractItemModel>
#include <vector>

#include "viewer/models/inspection.h"

namespace hw::viewer {

class InspectorModel : public QAbstractItemModel {
    Q_OBJECT
public:
    enum Column { Name, Value, ColumnCount };
    static constexpr int kLinkRole = Qt::UserRole + 1;  // the value leads to something else

    explicit InspectorModel(QObject* parent = nullptr);
    void setGroups(std::vector<FactGroup> groups);

    QModelIndex index(int row, int column, const QModelIndex& parent = {}) const override;
    QModelIndex parent(const QModelIndex& child) const override;
    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

    /// What a row's value speaks of; none where it leads nowhere.
    Target target(const QModelIndex& index) const;
    const std::vector<FactGroup>& groups() const { return groups_; }

private:
    const Fact* fact(const QModelIndex& index) const;  // null for a group's row

    std::vector<FactGroup> groups_;
};

}  // namespace hw::viewer

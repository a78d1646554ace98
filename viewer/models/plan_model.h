// SPDX-License-Identifier: GPL-3.0-or-later
// A plan as a tree: layers, and in them the ops that it recomputes, encodes or runs under another
// implementation, with the reason, and what they took when it was run.
#pragma once

#include <QAbstractItemModel>
#include <vector>

#include "viewer/models/plan_reasons.h"

namespace hw::viewer {

class PlanModel : public QAbstractItemModel {
    Q_OBJECT
public:
    enum Column { Name, Times, Cost, Measured, Freed, Saved, AtPeak, Why, ColumnCount };

    explicit PlanModel(QObject* parent = nullptr);
    /// A null plan has no rows.
    void setPlan(DocumentPointer document, const InspectedPlan& inspected);

    QModelIndex index(int row, int column, const QModelIndex& parent = {}) const override;
    QModelIndex parent(const QModelIndex& child) const override;
    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

    /// Of an op's row; null for a layer's.
    const PlanChange* change(const QModelIndex& index) const;
    core::LayerIndex layer(const QModelIndex& index) const;
    /// The plan was run, and its changes with it.
    bool measured() const { return measured_; }
    QModelIndex indexOf(core::OpIndex op) const;  // invalid: the plan leaves it as it was

private:
    struct Figures {
        int times = 0, freed = 0;
        std::optional<core::Nanoseconds> cost, measured;  // none: it takes no time
        core::Bytes saved, atPeak;
    };
    struct Group {
        QString name;
        core::LayerIndex layer = core::kNone;
        std::vector<PlanChange> changes;
        Figures figures = {};
        std::size_t most = 0;                         // the change that saves most
        core::Bytes mostAtPeak = {}, mostSaved = {};  // by it
    };
    static Figures figuresOf(const PlanChange& change);
    QVariant cell(Column column, const QString& name, const Figures& figures, const QString& why,
                  bool raw) const;

    DocumentPointer document_;
    PlanPointer plan_;
    bool measured_ = false;
    TimeFormat time_;
    SizeUnit size_;
    std::vector<Group> groups_;  // the one that saves most at the peak first
};

}  // namespace hw::viewer

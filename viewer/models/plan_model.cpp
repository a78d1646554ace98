// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/models/plan_model.h"

#include <algorithm>
#include <map>
#include <utility>

#include "viewer/models/table_text.h"

namespace hw::viewer {
namespace {

void add(std::optional<core::Nanoseconds>& sum, const std::optional<core::Nanoseconds>& part) {
    if (part) sum = sum.value_or(core::Nanoseconds(0)) + *part;
}

}  // namespace

PlanModel::PlanModel(QObject* parent) : QAbstractItemModel(parent) {}

PlanModel::Figures PlanModel::figuresOf(const PlanChange& change) {
    Figures figures;
    figures.times = change.times;
    figures.freed = static_cast<int>(change.standIn() ? 0 : change.evictions.size());
    if (change.times > 0 || change.implementation) figures.cost = change.cost;
    figures.measured = change.measuredCost;
    figures.saved = change.saved();
    figures.atPeak = change.savedAtPeak();
    return figures;
}

void PlanModel::setPlan(DocumentPointer document, const InspectedPlan& inspected) {
    beginResetModel();
    document_ = std::move(document);
    plan_ = inspected.plan;
    measured_ = false;
    groups_.clear();
    if (document_ && plan_) {
        std::map<QString, std::size_t> known;
        const core::TrainingGraph& graph = document_->graph;
        for (const PlanChange& change : *inspected.changes) {
            const core::Op& op = graph.ops[change.op];
            QString name = layerText(graph, op.layer);
            if (name.isEmpty())
                name = graph.layers.empty() ? shortOpName(op.name) : tr("(no layer)");
            const auto [at, isNew] = known.try_emplace(name, groups_.size());
            if (isNew) groups_.push_back({name, op.layer, {}});
            Group& group = groups_[at->second];
            const Figures figures = figuresOf(change);
            measured_ = measured_ || figures.measured;
            group.figures.times += figures.times;
            group.figures.freed += figures.freed;
            add(group.figures.cost, figures.cost);
            add(group.figures.measured, figures.measured);
            group.figures.saved += figures.saved;
            group.figures.atPeak += figures.atPeak;
            if (std::pair(figures.atPeak, figures.saved) >
                std::pair(group.mostAtPeak, group.mostSaved)) {
                group.most = group.changes.size();
                group.mostAtPeak = figures.atPeak, group.mostSaved = figures.saved;
            }
            group.changes.push_back(change);
        }
    }
    std::stable_sort(groups_.begin(), groups_.end(), [](const Group& a, const Group& b) {
        return std::pair(a.figures.atPeak, a.figures.saved) >
               std::pair(b.figures.atPeak, b.figures.saved);
    });
    core::Nanoseconds slowest;
    core::Bytes largest;
    for (const Group& group : groups_) {
        slowest = std::max({slowest, group.figures.cost.value_or(core::Nanoseconds(0)),
                            group.figures.measured.value_or(core::Nanoseconds(0))});
        largest = std::max(largest, group.figures.saved);
    }
    time_ = TimeFormat::fitting(slowest);
    size_ = SizeUnit::fitting(largest);
    endResetModel();
}

// The id of a layer's row is 0, that of an op's row its layer's row + 1.
QModelIndex PlanModel::index(int row, int column, const QModelIndex& parent) const {
    if (!hasIndex(row, column, parent)) return {};
    return createIndex(row, column,
                       parent.isValid() ? static_cast<quintptr>(parent.row()) + 1 : quintptr{0});
}

QModelIndex PlanModel::parent(const QModelIndex& child) const {
    if (!child.isValid() || child.internalId() == 0) return {};
    return createIndex(static_cast<int>(child.internalId() - 1), 0, quintptr{0});
}

int PlanModel::rowCount(const QModelIndex& parent) const {
    if (!parent.isValid()) return static_cast<int>(groups_.size());
    if (parent.internalId() != 0 || parent.column() != 0) return 0;
    return static_cast<int>(groups_[static_cast<std::size_t>(parent.row())].changes.size());
}

int PlanModel::columnCount(const QModelIndex&) const {
    return ColumnCount;
}

QVariant PlanModel::headerData(int section, Qt::Orientation orientation, int role) const {
    if (orientation != Qt::Horizontal || section < 0 || section >= ColumnCount) return {};
    const auto column = static_cast<Column>(section);
    if (role == Qt::TextAlignmentRole)
        return static_cast<int>((column == Name || column == Why ? Qt::AlignLeft : Qt::AlignRight) |
                                Qt::AlignVCenter);
    if (role == Qt::ToolTipRole) {
        if (column == Times) return tr("How often the plan computes it again");
        if (column == Cost)
            return tr(
                "Predicted time of its recomputations, and what another implementation takes "
                "more or less than the recorded one");
        if (column == Measured) return tr("The same in the latest run of the plan");
        if (column == Freed) return tr("How often its results are freed before their last use");
        if (column == Saved) return tr("Bytes of its results that are not held all the time");
        if (column == AtPeak) return tr("Those of them that the recorded peak does without");
        return {};
    }
    if (role != Qt::DisplayRole && role != kRawRole) return {};
    const bool raw = role == kRawRole;
    switch (column) {
        case Name:
            return tr("layer, op");
        case Times:
            return tr("recomputed");
        case Cost:
            return raw ? tr("extra time (ns)") : tr("extra time");
        case Measured:
            return raw ? tr("measured extra time (ns)") : tr("measured");
        case Freed:
            return tr("freed early");
        case Saved:
            return raw ? tr("not held (bytes)") : tr("not held");
        case AtPeak:
            return raw ? tr("saved at the peak (bytes)") : tr("at the peak");
        case Why:
            return tr("why");
        case ColumnCount:
            break;
    }
    return {};
}

QVariant PlanModel::cell(Column column, const QString& name, const Figures& figures,
                         const QString& why, bool raw) const {
    const QString none = QStringLiteral("—");
    const auto count = [&](int number) {
        return raw ? QVariant(number) : QVariant(number == 0 ? none : QString::number(number));
    };
    const auto time = [&](const std::optional<core::Nanoseconds>& known) -> QVariant {
        if (raw) return known ? QVariant(static_cast<qlonglong>(known->count())) : QVariant();
        return known ? time_.text(*known) : none;
    };
    const auto size = [&](core::Bytes bytes) -> QVariant {
        if (raw) return static_cast<qlonglong>(bytes.count());
        return bytes == core::Bytes(0) ? none : size_.text(bytes);
    };
    switch (column) {
        case Name:
            return name;
        case Times:
            return count(figures.times);
        case Cost:
            return time(figures.cost);
        case Measured:
            return time(figures.measured);
        case Freed:
            return count(figures.freed);
        case Saved:
            return size(figures.saved);
        case AtPeak:
            return size(figures.atPeak);
        case Why:
            return why;
        case ColumnCount:
            break;
    }
    return {};
}

QVariant PlanModel::data(const QModelIndex& index, int role) const {
    if (!checkIndex(index, CheckIndexOption::IndexIsValid)) return {};
    if (role == Qt::TextAlignmentRole) return headerData(index.column(), Qt::Horizontal, role);
    if (role != Qt::DisplayRole && role != kRawRole && role != Qt::ToolTipRole) return {};
    const bool raw = role == kRawRole;
    const auto column = static_cast<Column>(index.column());
    if (const PlanChange* op = change(index)) {
        const QString name = QStringLiteral("#%1 %2").arg(op->op).arg(
            shortOpName(document_->graph.ops[op->op].name));
        const QString how = op->standIn() ? tr("%1, %2").arg(name, tr(op->standIn()->leaves))
                            : op->implementation
                                ? tr("%1, %2").arg(name, toQString(op->implementation->name))
                                : name;
        return cell(column, how, figuresOf(*op),
                    column == Why ? reasonText(*document_, *plan_, *op) : QString(), raw);
    }
    const Group& group = groups_[static_cast<std::size_t>(index.row())];
    const std::size_t count = group.changes.size();
    const QString reason =
        column == Why ? reasonText(*document_, *plan_, group.changes[group.most]) : QString();
    return cell(column, group.name, group.figures,
                count == 1 ? reason : tr("%1 ops; %2").arg(count).arg(reason), raw);
}

const PlanChange* PlanModel::change(const QModelIndex& index) const {
    if (!index.isValid() || index.internalId() == 0) return nullptr;
    return &groups_[index.internalId() - 1].changes[static_cast<std::size_t>(index.row())];
}

core::LayerIndex PlanModel::layer(const QModelIndex& index) const {
    if (!index.isValid()) return core::kNone;
    return index.internalId() == 0 ? groups_[static_cast<std::size_t>(index.row())].layer
                                   : groups_[index.internalId() - 1].layer;
}

QModelIndex PlanModel::indexOf(core::OpIndex op) const {
    for (std::size_t g = 0; g < groups_.size(); ++g)
        for (std::size_t i = 0; i < groups_[g].changes.size(); ++i)
            if (groups_[g].changes[i].op == op)
                return index(static_cast<int>(i), 0, index(static_cast<int>(g), 0));
    return {};
}

}  // namespace hw::viewer

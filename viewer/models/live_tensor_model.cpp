// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/models/live_tensor_model.h"

#include <algorithm>
#include <map>

#include "viewer/models/table_text.h"

namespace hw::viewer {
namespace {
const QString kNoFigure = QStringLiteral("—");
}

LiveTensorModel::LiveTensorModel(QObject* parent) : QAbstractTableModel(parent) {}

void LiveTensorModel::setSets(DocumentPointer document, const LiveSet& recorded,
                              const LiveSet* planned) {
    beginResetModel();
    document_ = std::move(document);
    rows_.clear();
    std::map<core::StorageIndex, std::size_t> known;
    for (const LiveItem& item : recorded.items) {
        if (item.storage != core::kNone) known[item.storage] = rows_.size();
        rows_.push_back({item, true, false});
    }
    if (planned)
        for (const LiveItem& item : planned->items) {
            const auto found = known.find(item.storage);
            if (found != known.end() && item.storage != core::kNone)
                rows_[found->second].planned = true;
            else
                rows_.push_back({item, false, true});
        }
    std::stable_sort(rows_.begin(), rows_.end(),
                     [](const Row& a, const Row& b) { return a.item.bytes > b.item.bytes; });
    size_ = SizeUnit::fitting(rows_.empty() ? core::Bytes(0) : rows_.front().item.bytes);
    endResetModel();
}

int LiveTensorModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : static_cast<int>(rows_.size());
}
int LiveTensorModel::columnCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : ColumnCount;
}

QVariant LiveTensorModel::headerData(int section, Qt::Orientation orientation, int role) const {
    if (orientation != Qt::Horizontal || section < 0 || section >= ColumnCount) return {};
    const auto column = static_cast<Column>(section);
    if (role == Qt::TextAlignmentRole)
        return static_cast<int>((column == Size ? Qt::AlignRight : Qt::AlignLeft) |
                                Qt::AlignVCenter);
    if (role == Qt::ToolTipRole) {
        if (column == LiveAt)
            return tr("Live at the peak of the recorded step, of the plan, or of both");
        if (column == Line)
            return tr("The line of the program that made it: the innermost one outside of torch");
        if (column == MadeBy && document_ && document_->bands.byLine())
            return tr("The op, or the frame of torch that the line led to");
        if (column == LastUse) return tr("The last op of the step that reads or writes it");
        return {};
    }
    if (role == kRawRole && column == Size) return tr("size (bytes)");
    if (role != Qt::DisplayRole && role != kRawRole) return {};
    switch (column) {
        case Place:
            return document_ && document_->bands.byLine()          ? tr("allocated by")
                   : document_ && !document_->graph.layers.empty() ? tr("layer")
                                                                   : tr("category");
        case Shape:
            return tr("shape");
        case Dtype:
            return tr("dtype");
        case Size:
            return tr("size");
        case LiveAt:
            return tr("at the peak of");
        case MadeBy:
            return tr("made by");
        case Line:
            return tr("line");
        case LastUse:
            return tr("needed last by");
        case ColumnCount:
            break;
    }
    return {};
}

QVariant LiveTensorModel::data(const QModelIndex& index, int role) const {
    if (!checkIndex(index, CheckIndexOption::IndexIsValid)) return {};
    const Row& row = rows_[static_cast<std::size_t>(index.row())];
    const auto column = static_cast<Column>(index.column());
    switch (role) {
        case Qt::ToolTipRole:
            if (column == Line || (column == Place && document_->bands.byLine()))
                if (const QString calls = document_->stackText(row.item.storage); !calls.isEmpty())
                    return calls;
            [[fallthrough]];
        case Qt::DisplayRole:
            return text(row, column);
        case kRawRole:
            return raw(row, column);
        case kBandRole:
            return static_cast<int>(row.item.band);
        case Qt::TextAlignmentRole:
            return headerData(index.column(), Qt::Horizontal, role);
        default:
            return {};
    }
}

QVariant LiveTensorModel::raw(const Row& row, Column column) const {
    if (column == Size) return static_cast<qlonglong>(row.item.bytes.count());
    if (row.item.storage != core::kNone && document_->plannable) {
        const core::Storage& storage = document_->graph.storages[row.item.storage];
        if (column == MadeBy) return storage.creator;
        if (column == LastUse)
            return storage.aliveAtEnd ? static_cast<int>(document_->graph.ops.size())
                                      : lastUser(storage);
    }
    return text(row, column);
}

QString LiveTensorModel::text(const Row& row, Column column) const {
    const core::TrainingGraph& graph = document_->graph;
    const core::StorageIndex index = row.item.storage;
    const auto opNamed = [&](core::OpIndex op) {
        return QStringLiteral("#%1 %2").arg(op).arg(shortOpName(graph.ops[op].name));
    };
    if (column == Size) return size_.text(row.item.bytes);
    if (column == LiveAt)
        return row.recorded && row.planned ? tr("both")
               : row.recorded              ? tr("recorded")
                                           : tr("plan");
    if (column == Place) {
        const QString layer = layerText(graph, row.item.layer);
        if (!layer.isEmpty() && !document_->bands.byLine()) return layer;
        return index == core::kNone ? row.item.name : document_->kindOf(index);
    }
    if (column == MadeBy && index == core::kNone) return row.item.name;
    if (index == core::kNone) return kNoFigure;
    const core::Storage& storage = graph.storages[index];
    switch (column) {
        case Shape:
        case Dtype: {
            const TensorInfo info = document_->tensorInfo(index);
            const QString& found = column == Shape ? info.shape : info.dtype;
            return found.isEmpty() ? kNoFigure : found;
        }
        case MadeBy:
            if (row.item.op != core::kNone) return opNamed(row.item.op);
            return document_->plannable ? tr("before the step") : innermostFrame(index);
        case Line: {
            const QString line = document_->lineOf(index).section(QLatin1Char(' '), 0, -2);
            return line.isEmpty() ? kNoFigure : line;
        }
        case LastUse: {
            if (storage.aliveAtEnd) return tr("the end of the step");
            const core::OpIndex last = lastUser(storage);
            return last == core::kNone ? kNoFigure : opNamed(last);
        }
        default:
            return {};
    }
}

// Of torch's own frames the one that the line led to.
QString LiveTensorModel::innermostFrame(core::StorageIndex storage) const {
    const std::int64_t stack = document_->stackOf(storage);
    const auto frames = document_->stacks.frames(stack);
    return frames.empty() || frames.back() == document_->stacks.line(stack)
               ? kNoFigure
               : toQString(core::frameText(*frames.back()));
}

bool LiveTensorModel::knowsMakers() const {
    return std::any_of(rows_.begin(), rows_.end(), [this](const Row& row) {
        return row.item.op != core::kNone ||
               (row.item.storage != core::kNone && innermostFrame(row.item.storage) != kNoFigure);
    });
}

int LiveTensorModel::rowOf(core::StorageIndex storage) const {
    const auto found = std::find_if(rows_.begin(), rows_.end(),
                                    [&](const Row& row) { return row.item.storage == storage; });
    return storage == core::kNone || found == rows_.end() ? -1
                                                          : static_cast<int>(found - rows_.begin());
}

}  // namespace hw::viewer

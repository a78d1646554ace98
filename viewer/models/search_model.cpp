// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/models/search_model.h"

#include <QStringList>
#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "viewer/models/layer_model.h"
#include "viewer/models/live_set.h"
#include "viewer/models/table_text.h"

namespace hw::viewer {
namespace {

using core::kNone;

core::Bytes bytesMadeBy(const core::TrainingGraph& graph, const core::Op& op) {
    core::Bytes sum;
    for (const core::OpOutput& output : op.outputs)
        if (output.makesStorage) sum += graph.storages[graph.storageOf(output.tensor)].bytes;
    return sum;
}

// How close a name comes to what was typed.
int rankOf(const QString& name, const QString& typed) {
    if (name.compare(typed, Qt::CaseInsensitive) == 0) return 0;
    const QString bare = name.section(QLatin1Char(' '), 1);  // without an op's number
    if (bare.compare(typed, Qt::CaseInsensitive) == 0) return 1;
    if (name.startsWith(typed, Qt::CaseInsensitive)) return 2;
    return name.contains(typed, Qt::CaseInsensitive) ? 3 : 4;
}

}  // namespace

SearchModel::SearchModel(QObject* parent) : QAbstractTableModel(parent) {}

void SearchModel::setDocument(DocumentPointer document) {
    beginResetModel();
    document_ = std::move(document);
    entries_.clear();
    hits_.clear();
    matches_ = 0;
    endResetModel();
}

void SearchModel::add(What what, Target target, const QString& name, const QString& place,
                      const QString& more, core::Bytes size) {
    const QString words = QStringList{name, place, more}.join(QLatin1Char(' ')).toLower();
    entries_.push_back({what, target, name, place, words, size});
}

void SearchModel::addLayers() {
    for (const LayerShare& share : layerTree(*document_).shares) {
        if (share.layer == kNone) continue;
        add(What::Layer, {Selection::Kind::Layer, share.layer},
            layerText(document_->graph, share.layer),
            toQString(document_->graph.layers[share.layer].type), {}, share.atPeak);
    }
}

// A line leads to the largest tensor that it made.
void SearchModel::addLines() {
    struct Line {
        core::Bytes sum, largest;
        Target target;
    };
    std::map<QString, Line> lines;
    const core::TrainingGraph& graph = document_->graph;
    for (core::StorageIndex s = 0; s < static_cast<core::StorageIndex>(graph.storages.size());
         ++s) {
        const QString text = document_->lineOf(s);
        if (text.isEmpty()) continue;
        Line& line = lines[text];
        const core::Bytes size = graph.storages[s].bytes;
        line.sum += size;
        if (line.target && size <= line.largest) continue;
        line.largest = size;
        line.target = {Selection::Kind::Tensor, s};
    }
    for (core::OpIndex op = 0; op < static_cast<core::OpIndex>(graph.ops.size()); ++op) {
        const core::SourceFrameRow* frame = document_->stacks.line(document_->stackOfOp(op));
        if (!frame) continue;  // an op that makes no storage has a line all the same
        Line& line = lines[toQString(core::frameText(*frame))];
        if (!line.target) line.target = {Selection::Kind::Op, op};
    }
    for (const auto& [text, line] : lines) add(What::Line, line.target, text, {}, {}, line.sum);
}

void SearchModel::addOps() {
    const core::TrainingGraph& graph = document_->graph;
    for (core::OpIndex i = 0; i < static_cast<core::OpIndex>(graph.ops.size()); ++i) {
        const core::Op& op = graph.ops[i];
        const core::SourceFrameRow* line = document_->stacks.line(document_->stackOfOp(i));
        add(What::Op, {Selection::Kind::Op, i},
            QStringLiteral("#%1 %2").arg(i).arg(shortOpName(op.name)), placeOf(graph, i),
            line ? toQString(core::frameText(*line)) : QString(), bytesMadeBy(graph, op));
    }
}

void SearchModel::addTensors() {
    const core::TrainingGraph& graph = document_->graph;
    for (core::StorageIndex s = 0; s < static_cast<core::StorageIndex>(graph.storages.size());
         ++s) {
        const core::Storage& storage = graph.storages[s];
        const TensorInfo info = document_->tensorInfo(s);
        QStringList place;
        for (const QString& part : {layerText(graph, storage.layer), info.shape, info.dtype})
            if (!part.isEmpty()) place << part;
        add(What::Tensor, {Selection::Kind::Tensor, s}, storageName(*document_, s),
            place.join(QStringLiteral(" · ")),
            document_->kindOf(s) + QLatin1Char(' ') + document_->lineOf(s), storage.bytes);
    }
}

bool SearchModel::before(const Hit& a, const Hit& b) const {
    const Entry &left = entries_[a.entry], &right = entries_[b.entry];
    if (a.rank != b.rank) return a.rank < b.rank;
    if (left.what != right.what) return left.what < right.what;
    if (left.size != right.size) return left.size > right.size;
    return a.entry < b.entry;
}

void SearchModel::setQuery(const QString& query) {
    beginResetModel();
    hits_.clear();
    matches_ = 0;
    const QString typed = query.simplified().toLower();
    if (document_ && !typed.isEmpty()) {
        if (entries_.empty()) addLayers(), addLines(), addOps(), addTensors();
        const QStringList words = typed.split(QLatin1Char(' '));
        for (std::size_t i = 0; i < entries_.size(); ++i) {
            const Entry& entry = entries_[i];
            const bool all = std::all_of(words.begin(), words.end(), [&](const QString& word) {
                return entry.words.contains(word);
            });
            if (all) hits_.push_back({i, rankOf(entry.name, typed)});
        }
        matches_ = hits_.size();
        const auto shown = hits_.begin() + static_cast<std::ptrdiff_t>(std::min(matches_, kShown));
        std::partial_sort(hits_.begin(), shown, hits_.end(),
                          [this](const Hit& a, const Hit& b) { return before(a, b); });
        hits_.erase(shown, hits_.end());
    }
    endResetModel();
}

int SearchModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : static_cast<int>(hits_.size());
}

int SearchModel::columnCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : ColumnCount;
}

QVariant SearchModel::headerData(int section, Qt::Orientation orientation, int role) const {
    if (orientation != Qt::Horizontal || section < 0 || section >= ColumnCount) return {};
    if (role == Qt::TextAlignmentRole)
        return static_cast<int>((section == Size ? Qt::AlignRight : Qt::AlignLeft) |
                                Qt::AlignVCenter);
    if (role == Qt::ToolTipRole && section == Size)
        return tr("Of a tensor; of all that an op or a line makes; of a layer at the peak");
    if (role == kRawRole && section == Size) return tr("size (bytes)");
    if (role != Qt::DisplayRole && role != kRawRole) return {};
    switch (static_cast<Column>(section)) {
        case Kind:
            return tr("what");
        case Name:
            return tr("name");
        case Place:
            return tr("where");
        case Size:
            return tr("size");
        case ColumnCount:
            break;
    }
    return {};
}

QVariant SearchModel::data(const QModelIndex& index, int role) const {
    if (!checkIndex(index, CheckIndexOption::IndexIsValid)) return {};
    if (role == Qt::TextAlignmentRole) return headerData(index.column(), Qt::Horizontal, role);
    const Entry& entry = entryOf(index.row());
    if (role == kRawRole && index.column() == Size)
        return static_cast<qlonglong>(entry.size.count());
    if (role != Qt::DisplayRole && role != kRawRole && role != Qt::ToolTipRole) return {};
    const std::array<QString, 4> kinds{tr("layer"), tr("line"), tr("op"), tr("tensor")};
    switch (static_cast<Column>(index.column())) {
        case Kind:
            return kinds[static_cast<std::size_t>(entry.what)];
        case Name:
            return entry.name;
        case Place:
            return entry.place;
        case Size:
            return entry.size == core::Bytes(0) ? QString()
                                                : SizeUnit::fitting(entry.size).text(entry.size);
        case ColumnCount:
            break;
    }
    return {};
}

core::Result<Target> firstFound(const DocumentPointer& document, const std::string& words) {
    SearchModel model;
    model.setDocument(document);
    model.setQuery(QString::fromStdString(words));
    if (model.rowCount() > 0) return model.target(0);
    return core::Error{core::ErrorCode::Usage, "nothing of this step is found by \"" + words + "\"",
                       "name an op, \"#12\", a layer or a source line; every word has to occur"};
}

}  // namespace hw::viewer

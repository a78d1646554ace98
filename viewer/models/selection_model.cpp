// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/models/selection_model.h"

#include <algorithm>
#include <utility>

#include "viewer/models/time_range.h"

namespace hw::viewer {

void SelectionModel::setDocument(DocumentPointer document) {
    document_ = std::move(document);
    selection_ = {};
    range_.reset();
    rangeFrom_ = core::kNone;
}

void SelectionModel::selectOp(core::OpIndex op) {
    if (!document_ || op < core::kNone ||
        op >= static_cast<core::OpIndex>(document_->graph.ops.size()))
        return;
    if (op == core::kNone) return select(Selection{});
    select(Selection{Selection::Kind::Op, op, core::kNone, document_->graph.ops[op].layer});
}

void SelectionModel::selectStorage(core::StorageIndex storage) {
    if (!document_ || storage < 0 ||
        storage >= static_cast<core::StorageIndex>(document_->graph.storages.size()))
        return;
    const core::Storage& chosen = document_->graph.storages[storage];
    select(Selection{Selection::Kind::Tensor, chosen.creator, storage, chosen.layer});
}

void SelectionModel::selectLayer(core::LayerIndex layer) {
    if (!document_ || layer < 0 ||
        layer >= static_cast<core::LayerIndex>(document_->graph.layers.size()))
        return;
    const std::vector<core::Op>& ops = document_->graph.ops;
    const auto first = std::find_if(ops.begin(), ops.end(), [&](const core::Op& op) {
        return withinLayer(document_->graph, op.layer, layer);
    });
    select(Selection{
        Selection::Kind::Layer,
        first == ops.end() ? core::kNone : static_cast<core::OpIndex>(first - ops.begin()),
        core::kNone, layer});
}

void SelectionModel::selectBlock(const BlockFacts& block) {
    if (!document_) return;
    Selection made{Selection::Kind::Block, core::kNone, core::kNone, core::kNone};
    made.block = block;
    select(made);
}

void SelectionModel::select(const Target& target) {
    switch (target.kind) {
        case Selection::Kind::None:
            return;
        case Selection::Kind::Op:
            return selectOp(target.index);
        case Selection::Kind::Tensor:
            return selectStorage(target.index);
        case Selection::Kind::Layer:
            return selectLayer(target.index);
        case Selection::Kind::Block:
            return;  // no index leads to one
    }
}

void SelectionModel::select(const Selection& selection) {
    if (selection == selection_) return;
    selection_ = selection;
    emit selectionChanged();
}

void SelectionModel::stepOp(int by) {
    if (!document_ || document_->graph.ops.empty()) return;
    const auto last = static_cast<core::OpIndex>(document_->graph.ops.size()) - 1;
    const core::OpIndex from =
        op() == core::kNone ? document_->curve.moments[document_->curve.peakMoment].op - by : op();
    selectOp(std::clamp<core::OpIndex>(from + by, 0, last));
}

void SelectionModel::selectRange(std::optional<TimeRange> range) {
    if (!document_ || range == range_) return;
    range_ = range;
    rangeFrom_ = core::kNone;
    emit rangeChanged();
}

void SelectionModel::stretchRange(int by) {
    if (!document_ || document_->graph.ops.empty()) return;
    if (op() == core::kNone) stepOp(0);
    if (!range_ || rangeFrom_ == core::kNone) rangeFrom_ = op();
    const core::OpIndex from = rangeFrom_;
    stepOp(by);
    const auto extent = [&](core::OpIndex op) {
        return extentOf(*document_, {Selection::Kind::Op, op, core::kNone, core::kNone});
    };
    const auto a = extent(from), b = extent(op());
    if (a && b) selectRange(TimeRange{std::min(a->begin, b->begin), std::max(a->end, b->end)});
    rangeFrom_ = from;
}

}  // namespace hw::viewer

// SPDX-License-Identifier: GPL-3.0-or-later
// Writes down facts of a step: how ops, storages, sizes and times are named wherever one inspects.
#pragma once

#include <QObject>
#include <algorithm>
#include <vector>

#include "viewer/models/inspection.h"

namespace hw::viewer {

class FactWriter {
public:
    FactWriter(const Document& document, const InspectedPlan& plan)
        : document_(document), graph_(document.graph), plan_(plan) {}

    /// Facts added from now on belong to it; one that stays without any is left out.
    void group(const QString& title) { groups_.push_back({title, {}}); }
    /// Where the value is empty nothing is added.
    void add(const QString& name, const QString& value, Target target = {});
    void op(const QString& name, core::OpIndex op);  // kNone: nothing is added
    void layer(const QString& name, core::LayerIndex layer);
    /// The program's line, and the calls that led there.
    void source(std::int64_t stack);
    /// Calls `tell(i)` for the first of `count` entries, and says how many more there are.
    template <class Tell>
    void list(std::size_t count, Tell tell) {
        const auto told = std::min<std::size_t>(count, kToldOfList);
        for (std::size_t i = 0; i < told; ++i) tell(i);
        if (count > told) add({}, QObject::tr("and %1 more").arg(count - told));
    }
    /// A group of the plan, with its name; false: no plan is drawn.
    bool planGroup();
    std::vector<FactGroup> take();

    QString opName(core::OpIndex op) const;  // "#12 convolution"
    QString storageText(
        core::StorageIndex storage) const;   // "16.78 MB · 8 × 64 × 56 × 56 · float32"
    static QString bytes(core::Bytes size);  // "16.78 MB (16777216 bytes)"
    QString time(core::Nanoseconds time) const;
    QString share(core::Bytes size) const;  // of the peak

    const Document& document() const { return document_; }
    const core::TrainingGraph& graph() const { return graph_; }
    const InspectedPlan& plan() const { return plan_; }

private:
    const Document& document_;
    const core::TrainingGraph& graph_;
    const InspectedPlan& plan_;
    std::vector<FactGroup> groups_;
};

void tellTensor(FactWriter& facts, core::StorageIndex storage);
void tellBlock(FactWriter& facts, const BlockFacts& block);
void tellOp(FactWriter& facts, core::OpIndex op);
void tellLayer(FactWriter& facts, core::LayerIndex layer);
void tellStep(FactWriter& facts);
/// What is live at the peak, the largest first; of one layer and its parts alone unless kNone.
void tellLargest(FactWriter& facts, core::LayerIndex layer);
/// What the plan does to an op: its time, its reason.
void tellChange(FactWriter& facts, const PlanChange& change);

}  // namespace hw::viewer

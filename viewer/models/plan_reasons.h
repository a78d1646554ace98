// SPDX-License-Identifier: GPL-3.0-or-later
// What a plan does in another way than the recorded step, op by op, and why.
#pragma once

#include <QString>
#include <memory>
#include <optional>
#include <vector>

#include "viewer/models/document.h"

namespace hw::viewer {

/// A stretch during which the plan does not hold a storage that it needs again.
struct Eviction {
    core::StorageIndex storage = core::kNone;
    core::OpIndex after = core::kNone;  // the first-time op after which it went
    core::OpIndex until = core::kNone;  // the first-time op for which it is back; kNone: the end
    core::OpIndex via = core::kNone;    // read by this op, which is recomputed for `until`
    bool overPeak = false;              // the recorded step holds it at its peak, the plan does not
    core::Bytes saved;  // against the recorded step, which may have freed it too; 0 then
    // What stands in for it meanwhile; none: it is freed.
    std::optional<core::ActionKind> standIn = std::nullopt;
    QString form = {};  // of the stand-in: "mask1"
};

/// One op that is recomputed, for whose result something stands in, or that runs under another
/// implementation than the captured one.
struct PlanChange {
    core::OpIndex op = core::kNone;
    int times = 0;  // recomputed
    // Of all its recomputations, and what its implementation takes more (below 0: less) than the
    // captured one: predicted, and in the latest run.
    core::Nanoseconds cost;
    std::optional<core::Nanoseconds> measuredCost;
    std::vector<Eviction> evictions;
    const core::Implementation* implementation = nullptr;  // of the plan; null: the captured one

    /// What stands in for its result; null: nothing does.
    const core::ActionTraits* standIn() const {
        if (evictions.empty() || !evictions.front().standIn) return nullptr;
        return &core::traitsOf(*evictions.front().standIn);
    }
    core::Bytes saved() const;        // each storage once
    core::Bytes savedAtPeak() const;  // of those that are absent at the recorded peak
};

using PlanChanges = std::shared_ptr<const std::vector<PlanChange>>;

/// In captured order of the ops, never null. `plan` must outlive them. Replays the whole plan.
PlanChanges planChanges(const Document& document, const PlanEntry& plan);

/// A plan, and what it does in another way than the recorded step.
struct InspectedPlan {
    PlanPointer plan;  // null: none is drawn, or what it does is not known yet
    PlanChanges changes = std::make_shared<const std::vector<PlanChange>>();
};

/// "relu of layer1.0 is not kept from op 12 to its use at op 96 (relu_backward · layer1.0): 16.8 MB
/// less at the peak".
QString reasonText(const Document& document, const PlanEntry& plan, const PlanChange& change);

}  // namespace hw::viewer

// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/models/active_plan.h"

#include <utility>

namespace hw::viewer {

namespace {

// Of more ops, replaying a plan takes longer than the window may wait.
bool isLarge(const Document& document) {
    constexpr std::size_t kReadAtOnce = 20'000;
    return document.graph.ops.size() > kReadAtOnce;
}

}  // namespace

void ActivePlan::setDocument(DocumentPointer document) {
    document_ = std::move(document);
    plan_ = nullptr;
    changes_ = nullptr;
    queue_.cancelAll();
}

void ActivePlan::set(const PlanPointer& plan) {
    plan_ = plan;
    changes_ = nullptr;
    queue_.cancelAll();
    emit planChanged();
    if (plan_ != plan || !isPlanned(plan) || !isLarge(*document_)) return;
    queue_.submit([this, document = document_, plan](const TaskQueue::Cancelled&) {
        auto changes = planChanges(*document, *plan);
        return [this, plan, changes = std::move(changes)] {
            if (plan != plan_) return;
            changes_ = changes;
            emit changesFound();
        };
    });
}

const PlanChanges& ActivePlan::changes() const {
    return document_ && isLarge(*document_) ? changes_ : changesNow();
}

InspectedPlan ActivePlan::inspected() const {
    const PlanChanges& found = changes();
    return found ? InspectedPlan{plan_, found} : InspectedPlan{};
}

const PlanChanges& ActivePlan::changesNow() const {
    if (!changes_ && document_ && isPlanned(plan_)) changes_ = planChanges(*document_, *plan_);
    return changes_;
}

}  // namespace hw::viewer

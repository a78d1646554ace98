// SPDX-License-Identifier: GPL-3.0-or-later
// What the workspace answers at once, wherever the budget is moved: plans that are known or that
// take milliseconds to make. A plan fits every budget from its own peak upwards.
#include <algorithm>
#include <cmath>
#include <memory>
#include <tuple>
#include <utility>

#include "planners/registry.h"
#include "viewer/models/workspace.h"

namespace hw::viewer {

namespace {

// As it is shown: a tenth of a percent is no reason to prefer one plan to another.
long shownOverhead(const PlanEntry& plan) {
    return std::lround(plan.overhead * 1000);
}

bool provesInfeasible(const PlanEntry& plan) {
    if (plan.status != planners::PlanStatus::Infeasible) return false;
    const planners::PlannerInfo* info = planners::findPlanner(plan.planner.toStdString());
    return info != nullptr && info->provesInfeasible;
}

}  // namespace

void Workspace::previewBudget(double ratio) {
    if (!document_) return;
    previewed_ = budgetAt(ratio);
    requestCoarsePlans();
    requestQuickPlans(*previewed_);
    showFitting(*previewed_);
}

void Workspace::showFitting(core::Bytes budget) {
    const PlanPointer best = fitting(budget);
    if (!best || best == active_) return;
    activate(best);
}

Answer Workspace::answer(core::Bytes budget) const {
    if (budget < document_->floor) return {Answer::Kind::Infeasible, nullptr};
    if (PlanPointer fits = fitting(budget)) return {Answer::Kind::Fits, std::move(fits)};
    Answer answer;
    const auto consider = [&](const PlanPointer& plan) {
        if (plan && plan->ok() && (!answer.plan || plan->peak < answer.plan->peak))
            answer.plan = plan;
    };
    for (const auto& [key, plan] : plans_) {
        consider(plan);
        if (plan && provesInfeasible(*plan) && plan->budget >= budget)
            return {Answer::Kind::Infeasible, plan};
    }
    for (const PlanPointer& plan : quickPlans_) consider(plan);
    return answer;
}

// Of the last place that was asked for. DTR answers in tens of milliseconds where it has a plan;
// our first one finds plans below that, but takes seconds where it finds none.
void Workspace::requestQuickPlans(core::Bytes budget) {
    if (budget < document_->floor || !document_->plannable || following_ || quickBudget_ == budget)
        return;
    quickBudget_ = budget;
    attempts_.cancelAll();
    const auto submit = [&](auto make) {
        attempts_.submit([this, make, document = document_](
                             const TaskQueue::Cancelled& cancelled) -> TaskQueue::Delivery {
            planners::Progress progress;
            progress.cancelled = cancelled;
            const core::Result<PlanPointer> plan = make(*document, progress);
            return [this, plan] {
                if (plan) keepQuickPlan(*plan);
            };
        });
    };
    submit([budget](const Document& document, const planners::Progress& progress) {
        constexpr double kAtMost = 1;  // seconds
        return computePlan(document, planners::defaultPlanner().name, budget, kAtMost, progress);
    });
    if (budget > infeasibleUpTo_)
        submit([budget](const Document& document, const planners::Progress& progress) {
            return quickPlan(document, budget, progress);
        });
}

// First those that ask for no budget and are there in milliseconds: one of them fits nearly
// anywhere. Then first plans at shares of the way from the floor to the peak, coarse ones before
// those in between; where there is none, there is none below either.
void Workspace::requestCoarsePlans() {
    if (!document_->plannable || following_ || std::exchange(coarseRequested_, true)) return;
    for (const planners::PlannerInfo& info : planners::plannerList()) {
        if (!info.budgetFree || info.baseline) continue;
        coarse_.submit([this, planner = info.name, document = document_](
                           const TaskQueue::Cancelled& cancelled) -> TaskQueue::Delivery {
            planners::Progress progress;
            progress.cancelled = cancelled;
            const core::Result<PlanPointer> plan = ownPlan(*document, planner, progress);
            return [this, plan] {
                if (plan) keepQuickPlan(*plan);
            };
        });
    }
    const double floor = ratio(document_->floor, document_->peak());
    const auto infeasibleUpTo = std::make_shared<double>(0);  // of the thread of coarse_
    for (const double share : {0.6, 0.3, 0.8, 0.45, 0.9, 0.7, 0.15, 0.2, 0.08, 0.04})
        coarse_.submit(
            [this, share, infeasibleUpTo, budget = budgetAt(floor + (1 - floor) * share),
             document = document_](const TaskQueue::Cancelled& cancelled) -> TaskQueue::Delivery {
                if (share < *infeasibleUpTo) return {};
                planners::Progress progress;
                progress.cancelled = cancelled;
                const core::Result<PlanPointer> plan = quickPlan(*document, budget, progress);
                if (!plan) return {};
                if (!(*plan)->ok()) *infeasibleUpTo = share;
                return [this, plan] { keepQuickPlan(*plan); };
            });
}

// Also that there was none.
void Workspace::keepQuickPlan(const PlanPointer& plan) {
    if (!plan->ok()) {
        if (plan->planner == toQString(planners::ownPlanner().name) &&
            plan->status != planners::PlanStatus::Cancelled)
            infeasibleUpTo_ = std::max(infeasibleUpTo_, plan->budget);
        return;
    }
    const auto worse = [](const PlanPointer& a, const PlanPointer& b) {
        return a->peak >= b->peak && a->overhead >= b->overhead;
    };
    std::erase_if(quickPlans_, [&](const PlanPointer& other) { return worse(other, plan); });
    if (std::none_of(quickPlans_.begin(), quickPlans_.end(),
                     [&](const PlanPointer& other) { return worse(plan, other); }))
        quickPlans_.push_back(plan);
    if (previewed_)
        showFitting(*previewed_);
    else
        updateActive();
    emit answersChanged();
}

// The cheapest; one of the planner that was chosen goes first, and among equals one that was made
// for this very budget.
PlanPointer Workspace::fitting(core::Bytes budget) const {
    PlanPointer best;
    const auto rank = [&](const PlanEntry& plan) {
        return std::tuple(chosen_ && plan.planner == chosen_->planner ? 0 : 1, shownOverhead(plan),
                          plan.budget == budget ? 0 : 1, plan.overhead);
    };
    const auto consider = [&](const PlanPointer& plan) {
        if (plan && plan->ok() && plan->peak <= budget && (!best || rank(*plan) < rank(*best)))
            best = plan;
    };
    for (const auto& [key, plan] : plans_) consider(plan);
    for (const PlanPointer& plan : document_->plans) consider(plan);
    for (const PlanPointer& plan : files_) consider(plan);
    for (const PlanPointer& plan : quickPlans_) consider(plan);
    return best;
}

}  // namespace hw::viewer

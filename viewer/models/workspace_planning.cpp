// SPDX-License-Identifier: GPL-3.0-or-later
// What the workspace asks of the planners: at the budget, along the frontier, and, wherever the
// budget is moved, plans that take milliseconds.
#include <algorithm>
#include <memory>
#include <utility>

#include "planners/registry.h"
#include "viewer/models/workspace.h"

namespace hw::viewer {

namespace {

bool isQuick(const QString& planner) {
    const planners::PlannerInfo* info = planners::findPlanner(planner.toStdString());
    return info != nullptr && info->quick;
}

planners::Progress stoppedBy(const TaskQueue::Cancelled& cancelled) {
    planners::Progress progress;
    progress.cancelled = cancelled;
    return progress;
}

}  // namespace

// While a session is being recorded, nothing is planned beside it.
bool Workspace::mayPlan(core::Bytes budget) const {
    return budget >= document_->floor && document_->plannable && !loader_.following();
}

void Workspace::planEvery() {
    if (!document_) return;
    askAtBudget(plannerNames());
    emit plansChanged();
}

void Workspace::askAtBudget(const QStringList& planners) {
    requestCoarsePlans();
    requestQuickPlans(budget_);
    // What is urgent overtakes what waits: the first comes first if it is asked for last.
    for (qsizetype i = planners.size() - 1; i >= 0; --i) request(planners[i], budget_, true);
}

// Drops requests that are no longer wanted; plans that are known stay.
void Workspace::cancelPlans() {
    for (TaskQueue* queue : {&searches_, &quick_}) queue->cancelAll();
    plans_.withdrawAll();
}

void Workspace::requestFrontier() {
    frontierWanted_ = true;
    if (!document_) return;
    requestCoarsePlans();
    const std::vector<double> ratios = plans_.frontierRatios();
    for (std::size_t start : {0U, 1U})
        for (std::size_t i = start; i < ratios.size(); i += 2)
            for (const QString& planner : selected_) request(planner, budgetAt(ratios[i]), false);
}

void Workspace::request(const QString& planner, core::Bytes budget, bool urgent) {
    if (!mayPlan(budget) || !plans_.request(planner, budget)) return;
    working_ = tr("planning");
    TaskQueue& queue = isQuick(planner) ? quick_ : searches_;
    queue.submit(
        [this, planner, budget, seconds = urgent ? kBudgetSeconds : kFrontierSeconds,
         document = document_](const TaskQueue::Cancelled& cancelled) -> TaskQueue::Delivery {
            core::Result<PlanPointer> plan = computePlan(*document, planner.toStdString(), budget,
                                                         seconds, stoppedBy(cancelled));
            return [this, planner, budget, plan] {
                if (!plan) {
                    plans_.withdraw(planner, budget);
                    emit failed(toQString(plan.error().what), toQString(plan.error().hint));
                    return;
                }
                plans_.add(*plan);
                updateActive();
                emit plansChanged();
            };
        },
        urgent);
}

core::Status Workspace::computeNow(const QString& planner, core::Bytes budget, double seconds) {
    if (budget < document_->floor || !document_->plannable || plans_.computed(planner, budget))
        return {};
    core::Result<PlanPointer> plan =
        computePlan(*document_, planner.toStdString(), budget, seconds);
    if (!plan) return plan.error();
    plans_.add(*plan);
    return {};
}

core::Status Workspace::planNow() {
    for (const QString& planner : selected_)
        if (core::Status done = computeNow(planner, budget_, kBudgetSeconds); !done) return done;
    updateActive();
    emit plansChanged();
    return {};
}

core::Status Workspace::frontierNow() {
    for (const double ratio : plans_.frontierRatios())
        for (const QString& planner : selected_)
            if (core::Status done = computeNow(planner, budgetAt(ratio), kFrontierSeconds); !done)
                return done;
    emit plansChanged();
    return {};
}

// Of the last place that was asked for. DTR answers in tens of milliseconds where it has a plan;
// our first one finds plans below that, but takes seconds where it finds none.
void Workspace::requestQuickPlans(core::Bytes budget) {
    if (!mayPlan(budget) || quickBudget_ == budget) return;
    quickBudget_ = budget;
    attempts_.cancelAll();
    const auto submit = [&](auto make) {
        attempts_.submit([this, make, document = document_](
                             const TaskQueue::Cancelled& cancelled) -> TaskQueue::Delivery {
            const core::Result<PlanPointer> plan = make(*document, stoppedBy(cancelled));
            return [this, plan] {
                if (plan) keepQuickPlan(*plan);
            };
        });
    };
    submit([budget](const Document& document, const planners::Progress& progress) {
        constexpr double kAtMost = 1;  // seconds
        return computePlan(document, planners::quickPlanner().name, budget, kAtMost, progress);
    });
    if (budget > plans_.quickInfeasibleUpTo())
        submit([budget](const Document& document, const planners::Progress& progress) {
            return quickPlan(document, budget, progress);
        });
}

// They ask for no budget and are there in milliseconds: one of them fits nearly anywhere.
void Workspace::requestOwnPlans() {
    for (const planners::PlannerInfo& info : planners::plannerList()) {
        if (!info.budgetFree || info.baseline) continue;
        coarse_.submit([this, planner = info.name, document = document_](
                           const TaskQueue::Cancelled& cancelled) -> TaskQueue::Delivery {
            const core::Result<PlanPointer> plan =
                ownPlan(*document, planner, stoppedBy(cancelled));
            return [this, plan] {
                if (plan) keepQuickPlan(*plan);
            };
        });
    }
}

// First plans at shares of the way from the floor to the peak, coarse ones before those in
// between; where there is none, there is none below either.
void Workspace::requestCoarsePlans() {
    if (!mayPlan(document_->floor) || std::exchange(coarseRequested_, true)) return;
    requestOwnPlans();
    const double floor = ratio(document_->floor, document_->peak());
    const auto infeasibleUpTo = std::make_shared<double>(0);  // of the thread of coarse_
    for (const double share : {0.6, 0.3, 0.8, 0.45, 0.9, 0.7, 0.15, 0.2, 0.08, 0.04})
        coarse_.submit(
            [this, share, infeasibleUpTo, budget = budgetAt(floor + (1 - floor) * share),
             document = document_](const TaskQueue::Cancelled& cancelled) -> TaskQueue::Delivery {
                if (share < *infeasibleUpTo) return {};
                const core::Result<PlanPointer> plan =
                    quickPlan(*document, budget, stoppedBy(cancelled));
                if (!plan) return {};
                if (!(*plan)->ok()) *infeasibleUpTo = share;
                return [this, plan] { keepQuickPlan(*plan); };
            });
}

// Also that there was none.
void Workspace::keepQuickPlan(const PlanPointer& plan) {
    plans_.addQuick(plan);
    if (!plan->ok()) return;
    if (previewed_)
        showFitting(*previewed_);
    else
        updateActive();
    emit answersChanged();
}

}  // namespace hw::viewer

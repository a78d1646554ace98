// SPDX-License-Identifier: GPL-3.0-or-later
// What the workspace asks of the planners at the budget, and along the frontier.
#include <algorithm>
#include <cmath>
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

constexpr std::size_t kReadAtOnce = 20'000;  // ops of a step whose plan is replayed in no time

}  // namespace

void Workspace::selectPlanners(const QStringList& names) {
    QStringList wanted;
    for (const QString& name : planners())
        if (names.contains(name)) wanted << name;
    if (wanted == selected_) return;
    selected_ = wanted;
    emit plannersChanged();
    if (!document_) return;
    if (frontierWanted_) {
        setBudget(budget_);
        requestFrontier();
    }
    emit plansChanged();
}

void Workspace::setBudgetRatio(double ratio) {
    if (document_) setBudget(budgetAt(ratio));
}

void Workspace::placeBudget(double ratio) {
    if (!document_) return;
    budget_ = budgetAt(ratio);
    emit budgetChanged();
}

void Workspace::setBudget(core::Bytes budget) {
    if (!document_) return;
    const bool moved = budget != budget_;
    budget_ = budget;
    previewed_.reset();
    if (moved) cancelPlans();
    emit budgetChanged();
    askAtBudget(selected_);
    updateActive();
    emit plansChanged();
    if (moved && frontierWanted_) requestFrontier();
}

void Workspace::planEvery() {
    if (!document_) return;
    askAtBudget(planners());
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
    std::erase_if(plans_, [](const auto& item) { return !item.second; });
}

void Workspace::requestFrontier() {
    frontierWanted_ = true;
    if (!document_) return;
    requestCoarsePlans();
    const std::vector<double> ratios = frontierRatios();
    for (std::size_t start : {0U, 1U})
        for (std::size_t i = start; i < ratios.size(); i += 2)
            for (const QString& planner : selected_) request(planner, budgetAt(ratios[i]), false);
}

void Workspace::request(const QString& planner, core::Bytes budget, bool urgent) {
    if (budget < document_->floor || !document_->plannable || following_) return;
    const Key key{planner, budget.count()};
    if (!plans_.emplace(key, nullptr).second) return;
    working_ = tr("planning");
    TaskQueue& queue = isQuick(planner) ? quick_ : searches_;
    queue.submit(
        [this, key, seconds = urgent ? kBudgetSeconds : kFrontierSeconds,
         document = document_](const TaskQueue::Cancelled& cancelled) -> TaskQueue::Delivery {
            planners::Progress progress;
            progress.cancelled = cancelled;
            core::Result<PlanPointer> plan = computePlan(
                *document, key.first.toStdString(), core::Bytes(key.second), seconds, progress);
            return [this, key, plan] {
                if (plan) return store(key, *plan);
                plans_.erase(key);
                emit failed(toQString(plan.error().what), toQString(plan.error().hint));
            };
        },
        urgent);
}

void Workspace::store(const Key& key, PlanPointer plan) {
    plans_[key] = std::move(plan);
    updateActive();
    emit plansChanged();
}

core::Status Workspace::computeNow(const QString& planner, core::Bytes budget, double seconds) {
    if (budget < document_->floor || !document_->plannable) return {};
    if (const auto known = plans_.find({planner, budget.count()});
        known != plans_.end() && known->second)
        return {};
    core::Result<PlanPointer> plan =
        computePlan(*document_, planner.toStdString(), budget, seconds);
    if (!plan) return plan.error();
    plans_[{planner, budget.count()}] = *plan;
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
    for (const double ratio : frontierRatios())
        for (const QString& planner : selected_)
            if (core::Status done = computeNow(planner, budgetAt(ratio), kFrontierSeconds); !done)
                return done;
    emit plansChanged();
    return {};
}

void Workspace::choose(const PlanPointer& plan) {
    if (!plan || !plan->ok()) return;
    chosen_ = plan;
    if (plan->budget != budget_) return setBudget(plan->budget);
    updateActive();
    emit plansChanged();
}

// The old one stays while the first plan for a new budget is on its way.
void Workspace::updateActive() {
    const PlanPointer best = chosen_ && chosen_->budget == budget_ ? chosen_ : fitting(budget_);
    const bool waiting = std::any_of(plans_.begin(), plans_.end(), [this](const auto& item) {
        return item.first.second == budget_.count() && !item.second;
    });
    if (best == active_ || (waiting && !best)) return;
    activate(best);
}

void Workspace::activate(const PlanPointer& plan) {
    active_ = plan;
    activeChanges_ = nullptr;
    readers_.cancelAll();
    emit activePlanChanged();
    if (active_ != plan || !isPlanned(plan) || document_->graph.ops.size() <= kReadAtOnce) return;
    readers_.submit([this, document = document_, plan](const TaskQueue::Cancelled&) {
        auto changes = planChanges(*document, *plan);
        return [this, plan, changes = std::move(changes)] {
            if (plan != active_) return;
            activeChanges_ = changes;
            emit activeChangesFound();
        };
    });
}

const PlanChanges& Workspace::activeChanges() {
    const bool large = document_ && document_->graph.ops.size() > kReadAtOnce;
    return large ? activeChanges_ : activeChangesNow();
}

InspectedPlan Workspace::inspectedPlan() {
    const PlanChanges& changes = activeChanges();
    return changes ? InspectedPlan{active_, changes} : InspectedPlan{};
}

const PlanChanges& Workspace::activeChangesNow() {
    if (!activeChanges_ && document_ && isPlanned(active_))
        activeChanges_ = planChanges(*document_, *active_);
    return activeChanges_;
}

std::vector<PlanPointer> Workspace::frontier(const QString& planner) const {
    std::vector<PlanPointer> points;
    for (const auto& [key, plan] : plans_)
        if (key.first == planner && plan && plan->ok()) points.push_back(plan);
    std::sort(points.begin(), points.end(),
              [](const PlanPointer& a, const PlanPointer& b) { return a->budget > b->budget; });
    return points;
}

std::vector<Workspace::Row> Workspace::rows() const {
    std::vector<Row> rows;
    if (!document_) return rows;
    std::vector<PlanPointer> given = document_->plans;
    for (const PlanPointer& file : files_)
        if (std::find(given.begin(), given.end(), file) == given.end()) given.push_back(file);
    // A stored plan of the same planner and budget says more than a fresh one: it was run.
    const auto othersFrom =
        std::stable_partition(given.begin(), given.end(),
                              [&](const PlanPointer& plan) { return plan->budget == budget_; });
    for (const QString& planner : planners()) {
        const std::size_t before = rows.size();
        for (auto plan = given.begin(); plan != othersFrom; ++plan)
            if ((*plan)->planner == planner) rows.push_back({planner, *plan});
        const auto found = plans_.find({planner, budget_.count()});
        if (found != plans_.end() && rows.size() == before)
            rows.push_back({planner, found->second});
    }
    for (auto plan = given.begin(); plan != othersFrom; ++plan)
        if (!planners().contains((*plan)->planner)) rows.push_back({(*plan)->planner, *plan});
    std::stable_sort(othersFrom, given.end(), [](const PlanPointer& a, const PlanPointer& b) {
        return a->budget > b->budget;
    });
    for (auto plan = othersFrom; plan != given.end(); ++plan)
        rows.push_back({(*plan)->planner, *plan});
    return rows;
}

std::optional<core::Nanoseconds> Workspace::provenBound(core::Bytes budget) const {
    std::optional<core::Nanoseconds> best;
    const auto consider = [&](const PlanPointer& plan) {
        const bool proof = plan && plan->lowerBound && !plan->baseline();
        if (proof && plan->budget >= budget && plan->header.implementations.empty())
            best = std::max(best.value_or(core::Nanoseconds(0)), *plan->lowerBound);
    };
    for (const auto& [key, plan] : plans_) consider(plan);
    for (const PlanPointer& plan : document_->plans) consider(plan);
    for (const PlanPointer& plan : files_) consider(plan);
    return best;
}

std::optional<double> Workspace::gap(const PlanPointer& plan) const {
    if (!plan->ok()) return std::nullopt;
    const bool captured = plan->header.implementations.empty();
    const auto bound = captured ? provenBound(plan->budget) : plan->lowerBound;
    if (!bound) return std::nullopt;
    return std::max(0.0, plan->overhead - ratio(*bound, document_->judged.time));
}

PlanPointer Workspace::farCheaper(const PlanPointer& plan) const {
    constexpr double kPoints = 0.05, kShare = 0.5;
    PlanPointer best;
    const auto consider = [&](const PlanPointer& other) {
        const bool fits = other && other->ok() && other->peak <= plan->budget;
        if (fits && (!best || other->overhead < best->overhead)) best = other;
    };
    for (const auto& [key, other] : plans_) consider(other);
    for (const PlanPointer& other : document_->plans) consider(other);
    for (const PlanPointer& other : files_) consider(other);
    const bool far = best && plan->overhead - best->overhead >= kPoints &&
                     best->overhead - 1 <= (plan->overhead - 1) * kShare;
    return far ? best : nullptr;
}

std::optional<double> Workspace::planningSeconds(const PlanPointer& plan) const {
    if (plan->solveSeconds) return plan->solveSeconds;
    const auto found = plans_.find({plan->planner, plan->budget.count()});
    if (found == plans_.end() || !found->second) return std::nullopt;
    const PlanEntry& same = *found->second;
    return samePlan(same, *plan) ? same.solveSeconds : std::nullopt;
}

}  // namespace hw::viewer

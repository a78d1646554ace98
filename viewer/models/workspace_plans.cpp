// SPDX-License-Identifier: GPL-3.0-or-later
// What the workspace asks of the planners, and what it answers at once.
#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "viewer/models/workspace.h"

namespace hw::viewer {

namespace {

// Those whose plan takes milliseconds even for thousands of ops.
bool isQuick(const QString& planner) {
    return planner == QLatin1String("none") || planner.startsWith(QLatin1String("chen-")) ||
           planner.startsWith(QLatin1String("dtr:"));
}

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

void Workspace::glance(double ratio) {
    if (!document_) return;
    glanced_ = budgetAt(ratio);
    tryQuickly(*glanced_);
    showFitting(*glanced_);
}

void Workspace::showFitting(core::Bytes budget) {
    const PlanPointer best = neighbour(budget);
    if (!best || best == active_) return;
    active_ = best;
    emit activePlanChanged();
}

Answer Workspace::answer(core::Bytes budget) const {
    if (budget < document_->floor) return {Answer::Kind::Infeasible, nullptr};
    if (PlanPointer fits = neighbour(budget)) return {Answer::Kind::Fits, std::move(fits)};
    Answer answer;
    const auto consider = [&](const PlanPointer& plan) {
        if (plan && plan->ok() && (!answer.plan || plan->peak < answer.plan->peak))
            answer.plan = plan;
    };
    for (const auto& [key, plan] : plans_) consider(plan);
    for (const PlanPointer& plan : tries_) consider(plan);
    return answer;
}

// Of the last place that was asked for. DTR answers in tens of milliseconds where it has a plan;
// our first one comes upon plans below that.
void Workspace::tryQuickly(core::Bytes budget) {
    if (budget < document_->floor || !document_->plannable || following_ || trying_ == budget)
        return;
    trying_ = budget;
    attempts_.cancelAll();
    submitTry(attempts_, budget, "dtr:eqclass");
    submitTry(attempts_, budget, nullptr);
}

// First plans at shares of the way from the floor to the peak: one that fits nearly anywhere before
// those in between. Where there is none, there is none below either.
void Workspace::climbLadder() {
    if (!document_->plannable || following_ || std::exchange(climbed_, true)) return;
    const double floor = ratio(document_->floor, document_->peak());
    const auto hopeless = std::make_shared<double>(0);  // of the ladder's thread
    for (const double share : {0.3, 0.15, 0.6, 0.08, 0.45, 0.2, 0.8, 0.04})
        ladder_.submit(
            [this, share, hopeless, budget = budgetAt(floor + (1 - floor) * share),
             document = document_](const TaskQueue::Cancelled& cancelled) -> TaskQueue::Delivery {
                if (share < *hopeless) return {};
                planners::Progress progress;
                progress.cancelled = cancelled;
                const core::Result<PlanPointer> plan = quickPlan(*document, budget, progress);
                if (!plan || !(*plan)->ok()) {
                    *hopeless = share;
                    return {};
                }
                return [this, plan] { keepTry(*plan); };
            });
}

// By the planner, or the first plan of ours.
void Workspace::submitTry(TaskQueue& queue, core::Bytes budget, const char* planner) {
    queue.submit([this, budget, planner, document = document_](
                     const TaskQueue::Cancelled& cancelled) -> TaskQueue::Delivery {
        constexpr double kAtMost = 1;  // seconds
        planners::Progress progress;
        progress.cancelled = cancelled;
        const core::Result<PlanPointer> plan =
            planner ? computePlan(*document, planner, budget, kAtMost, progress)
                    : quickPlan(*document, budget, progress);
        return [this, plan] {
            if (plan && (*plan)->ok()) keepTry(*plan);
        };
    });
}

void Workspace::keepTry(const PlanPointer& plan) {
    const auto worse = [](const PlanPointer& a, const PlanPointer& b) {
        return a->peak >= b->peak && a->overhead >= b->overhead;
    };
    std::erase_if(tries_, [&](const PlanPointer& other) { return worse(other, plan); });
    if (std::none_of(tries_.begin(), tries_.end(),
                     [&](const PlanPointer& other) { return worse(plan, other); }))
        tries_.push_back(plan);
    if (glanced_)
        showFitting(*glanced_);
    else
        updateActive();
    emit answersChanged();
}

// A plan for a smaller budget fits as well; one of the planner that was chosen goes first.
PlanPointer Workspace::neighbour(core::Bytes budget) const {
    PlanPointer best;
    const auto consider = [&](const PlanPointer& plan) {
        if (!plan || !plan->ok() || plan->peak > budget) return;
        const bool kept = chosen_ && plan->planner == chosen_->planner;
        const bool bestKept = chosen_ && best && best->planner == chosen_->planner;
        if (!best || (kept && !bestKept) || (kept == bestKept && plan->overhead < best->overhead))
            best = plan;
    };
    for (const auto& [key, plan] : plans_) consider(plan);
    for (const PlanPointer& plan : tries_) consider(plan);
    for (const PlanPointer& plan : document_->plans) consider(plan);
    for (const PlanPointer& plan : files_) consider(plan);
    return best;
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
    glanced_.reset();
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
    tryQuickly(budget_);
    for (const QString& planner : planners) request(planner, budget_, true);
}

// What nobody waits for any more; what is known stays.
void Workspace::cancelPlans() {
    for (TaskQueue* queue : {&searches_, &quick_}) queue->cancelAll();
    std::erase_if(plans_, [](const auto& item) { return !item.second; });
}

void Workspace::requestFrontier() {
    frontierWanted_ = true;
    if (!document_) return;
    climbLadder();
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

void Workspace::updateActive() {
    PlanPointer best;
    if (chosen_ && chosen_->budget == budget_) {
        best = chosen_;
    } else {
        for (const Row& row : rows()) {
            if (!row.plan || !row.plan->ok() || row.plan->budget != budget_) continue;
            const bool kept = chosen_ && row.plan->planner == chosen_->planner;
            const bool bestKept = chosen_ && best && best->planner == chosen_->planner;
            if (!best || (kept && !bestKept) ||
                (kept == bestKept && row.plan->overhead < best->overhead))
                best = row.plan;
        }
    }
    // Until the first plan for the new budget is there: a neighbour that fits, or the old one.
    const bool waiting =
        !best && std::any_of(plans_.begin(), plans_.end(), [this](const auto& item) {
            return item.first.second == budget_.count() && !item.second;
        });
    if (waiting) best = neighbour(budget_);
    if (!best)
        for (const PlanPointer& plan : tries_)
            if (plan->budget == budget_) best = plan;
    if (best == active_ || (waiting && !best)) return;
    active_ = best;
    emit activePlanChanged();
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
    const auto known = [&](const QString& planner) {
        return std::any_of(given.begin(), given.end(), [&](const PlanPointer& plan) {
            return plan->planner == planner && plan->budget == budget_;
        });
    };
    for (const QString& planner : planners()) {
        const auto found = plans_.find({planner, budget_.count()});
        // A stored plan of the same planner and budget says more: it was run.
        if (found != plans_.end() && !known(planner)) rows.push_back({planner, found->second});
    }
    for (const PlanPointer& plan : given) rows.push_back({plan->planner, plan});
    return rows;
}

std::optional<double> Workspace::planningSeconds(const PlanPointer& plan) const {
    if (plan->solveSeconds) return plan->solveSeconds;
    const auto found = plans_.find({plan->planner, plan->budget.count()});
    if (found == plans_.end() || !found->second) return std::nullopt;
    const PlanEntry& twin = *found->second;
    return samePlan(twin, *plan) ? twin.solveSeconds : std::nullopt;
}

}  // namespace hw::viewer

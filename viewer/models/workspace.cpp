// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/models/workspace.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "planners/registry.h"

namespace hw::viewer {

namespace {

// One of each kind: the reference, Chen et al., DTR, Echo, ours.
QStringList usualPlanners() {
    QStringList names;
    for (const planners::PlannerInfo& info : planners::plannerList())
        if (info.preselected) names << toQString(info.name);
    return names;
}

}  // namespace

Workspace::Workspace(QObject* parent) : QObject(parent) {
    selectPlanners(usualPlanners());
    connect(&loader_, &DocumentLoader::started, this, [this](const QString& what) {
        cancelPlans();
        working_ = what;
    });
    connect(&loader_, &DocumentLoader::loaded, this, &Workspace::take);
    const auto update = [this] { emit busyChanged(pending(), working_); };
    connect(&loader_, &DocumentLoader::pendingChanged, this, update);
    for (TaskQueue* queue : {&searches_, &quick_})
        connect(queue, &TaskQueue::pendingChanged, this, update);
}

// Of a session that is being recorded, the budget keeps its share of the peak.
void Workspace::take(const LoadedDocument& loaded) {
    const bool same = loader_.following() && document_ && document_->path == loaded.document->path;
    const double kept = same ? budgetRatio() : 0;
    adopt(loaded);
    if (same) setBudgetRatio(std::max(kept, ratio(document_->floor, document_->peak())));
}

void Workspace::adopt(const LoadedDocument& loaded) {
    cancelPlans();
    attempts_.cancelAll();
    coarse_.cancelAll();
    document_ = loaded.document;
    plans_.reset(document_, loaded.files);
    previewed_.reset();
    quickBudget_.reset();
    coarseRequested_ = false;
    keepTo(loaded.files.empty() ? nullptr : loaded.files.front());
    live_ = nullptr;
    selection_.setDocument(document_);
    active_.setDocument(document_);
    const core::Bytes room = document_->peak() - document_->floor;
    const core::Bytes possible = document_->floor + core::Bytes(room.count() / 4);
    budget_ = chosen_ ? chosen_->budget : std::max(budgetAt(kDefaultRatio), possible);
    emit documentChanged();
    emit budgetChanged();
    updateActive();
    emit plansChanged();
}

void Workspace::openStep(std::int64_t step) {
    if (document_ && !loader_.following() && step != document_->step) reopen(step, {});
}

void Workspace::openDevice(const std::string& device) {
    if (document_ && !document_->plannable && !loader_.following())
        loader_.open(QString::fromStdString(document_->path), {}, std::nullopt, device);
}

void Workspace::reload() {
    if (document_ && !loader_.following())
        reopen(document_->step, active_.plan() ? active_.plan()->planner : QString());
}

// Keeps the budget's share of the peak, the frontier and the planner that was looked at.
void Workspace::reopen(std::int64_t step, const QString& planner) {
    connect(
        this, &Workspace::documentChanged, this,
        [this, frontier = frontierWanted_, kept = budgetRatio(), planner,
         budget = active_.plan() ? active_.plan()->budget : budget_] {
            setBudgetRatio(std::max(kept, ratio(document_->floor, document_->peak())));
            // By its bytes: a run measures costs, and with them the peak may be another.
            for (const PlanPointer& plan : document_->plans)
                if (plan->planner == planner && plan->measuredPeak && plan->budget == budget)
                    choose(plan);
            if (frontier) requestFrontier();
        },
        static_cast<Qt::ConnectionType>(Qt::QueuedConnection | Qt::SingleShotConnection));
    loader_.open(QString::fromStdString(document_->path), {}, step);
}

double Workspace::budgetRatio() const {
    return document_ ? ratio(budget_, document_->peak()) : kDefaultRatio;
}

// Rounded down as on the command line, so that the same ratio means the same bytes.
core::Bytes Workspace::budgetAt(double ratio) const {
    return core::Bytes(static_cast<std::int64_t>(
        std::floor(static_cast<double>(document_->peak().count()) * ratio)));
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

void Workspace::setBudgetRatio(double ratio) {
    if (document_) setBudget(budgetAt(ratio));
}

void Workspace::previewBudget(double ratio) {
    if (!document_) return;
    previewed_ = budgetAt(ratio);
    requestCoarsePlans();
    requestQuickPlans(*previewed_);
    showFitting(*previewed_);
}

void Workspace::placeBudget(double ratio) {
    if (!document_) return;
    budget_ = budgetAt(ratio);
    emit budgetChanged();
}

void Workspace::selectPlanners(const QStringList& names) {
    QStringList wanted;
    for (const QString& name : plannerNames())
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

void Workspace::choose(const PlanPointer& plan) {
    if (!plan || !plan->ok()) return;
    keepTo(plan);
    if (plan->budget != budget_) return setBudget(plan->budget);
    updateActive();
    emit plansChanged();
}

void Workspace::keepTo(const PlanPointer& plan) {
    chosen_ = plan;
    plans_.prefer(plan ? plan->planner : QString());
}

// The old one stays while the first plan for a new budget is on its way.
void Workspace::updateActive() {
    const PlanPointer best =
        chosen_ && chosen_->budget == budget_ ? chosen_ : plans_.cheapest(budget_);
    if (best == active_.plan() || (!best && plans_.awaits(budget_))) return;
    active_.set(best);
}

void Workspace::showFitting(core::Bytes budget) {
    const PlanPointer best = plans_.cheapest(budget);
    if (best && best != active_.plan()) active_.set(best);
}

void Workspace::showLive(std::shared_ptr<const StepCurve> curve) {
    if (!document_ || curve == live_) return;
    live_ = std::move(curve);
    emit liveChanged();
}

WorkspaceState Workspace::state() const {
    return {budget_, chosen_, selection_.current(), selection_.range()};
}

void Workspace::setState(const WorkspaceState& state) {
    if (!document_) return;
    keepTo(state.chosen);
    if (state.budget != budget_) {
        setBudget(state.budget);
    } else {
        updateActive();
        emit plansChanged();
    }
    selection_.select(state.selection);
    selection_.selectRange(state.range);
}

void Workspace::cancel() {
    loader_.cancel();
    attempts_.cancelAll();
    coarse_.cancelAll();
    coarseRequested_ = false;
    quickBudget_.reset();
    cancelPlans();
    emit plansChanged();
}

}  // namespace hw::viewer

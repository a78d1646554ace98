// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/models/workspace.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "planners/registry.h"
#include "viewer/models/time_range.h"

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
    for (TaskQueue* queue : {&queue_, &searches_, &quick_})
        connect(queue, &TaskQueue::pendingChanged, this, [this] {
            emit busyChanged(queue_.pending() + searches_.pending() + quick_.pending(), working_);
        });
}

std::vector<double> Workspace::frontierRatios() const {
    std::vector<double> ratios{1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2};
    // Rounded up, so that the last point is not below the floor itself.
    const double lowest =
        document_ ? std::ceil(ratio(document_->floor, document_->peak()) * 1e6) / 1e6 : 0;
    if (lowest > 0.5)
        for (std::size_t i = 0; i < ratios.size(); ++i)
            ratios[i] =
                1 - (1 - lowest) * static_cast<double>(i) / static_cast<double>(ratios.size() - 1);
    return ratios;
}

core::Result<Workspace::Loaded> Workspace::load(const std::string& path,
                                                const std::vector<std::string>& planFiles,
                                                std::optional<std::int64_t> step) {
    core::Result<DocumentPointer> document = loadDocument(path, step);
    if (!document) return document.error();
    Loaded loaded{*document, {}};
    for (const std::string& file : planFiles) {
        core::Result<PlanPointer> plan = loadPlan(**document, file);
        if (!plan) return plan.error();
        // A file that the session holds too is shown as the session knows it, with its runs.
        const auto& stored = (*document)->plans;
        const auto same = std::find_if(stored.begin(), stored.end(), [&](const PlanPointer& other) {
            return samePlan(*other, **plan);
        });
        loaded.files.push_back(same == stored.end() ? *plan : *same);
    }
    return loaded;
}

void Workspace::open(const QString& path, const QStringList& planFiles,
                     std::optional<std::int64_t> step) {
    queue_.cancelAll();
    cancelPlans();
    following_ = followLoading_ = false;
    working_ = tr("opening %1").arg(path);
    std::vector<std::string> files;
    for (const QString& file : planFiles) files.push_back(file.toStdString());
    queue_.submit([this, path, files, step](const TaskQueue::Cancelled&) -> TaskQueue::Delivery {
        core::Result<Loaded> loaded = load(path.toStdString(), files, step);
        return [this, loaded] {
            if (loaded) return adopt(*loaded);
            emit failed(toQString(loaded.error().what), toQString(loaded.error().hint));
        };
    });
}

void Workspace::follow(const QString& path) {
    if (!following_) {
        queue_.cancelAll();
        cancelPlans();
        following_ = true, followLoading_ = false;
    }
    followAgain_ = followLoading_;  // one at a time; the last step is what counts
    if (!followLoading_) submitFollow(path);
}

// A step that cannot be read yet is passed over: the next one is on its way.
void Workspace::submitFollow(const QString& path) {
    followLoading_ = true;
    working_ = tr("reading the last step");
    queue_.submit([this, path](const TaskQueue::Cancelled&) -> TaskQueue::Delivery {
        core::Result<Loaded> loaded = load(path.toStdString(), {}, std::nullopt);
        return [this, path, loaded] {
            followLoading_ = false;
            if (!following_) return;
            if (loaded) {
                const bool same = document_ && document_->path == (*loaded).document->path;
                const double kept = same ? budgetRatio() : 0;
                adopt(*loaded);
                if (same)
                    setBudgetRatio(std::max(kept, ratio(document_->floor, document_->peak())));
            }
            if (std::exchange(followAgain_, false)) submitFollow(path);
        };
    });
}

void Workspace::setRecords(const QStringList& files) {
    const bool same = !files.isEmpty() && !records_.isEmpty() && files.front() == records_.front();
    records_ = files;
    emit recordsChanged();
    if (!same) loadOther();
}

void Workspace::loadOther() {
    others_.cancelAll();
    const bool had = std::exchange(other_, nullptr) != nullptr;
    if (had) emit otherChanged();
    if (records_.isEmpty()) return;
    others_.submit([this,
                    path = records_.front()](const TaskQueue::Cancelled&) -> TaskQueue::Delivery {
        core::Result<DocumentPointer> loaded = loadDocument(path.toStdString());
        return [this, loaded] {
            if (!loaded)
                return emit failed(toQString(loaded.error().what), toQString(loaded.error().hint));
            other_ = *loaded;
            emit otherChanged();
        };
    });
}

core::Status Workspace::loadOtherNow() {
    others_.cancelAll();
    if (records_.isEmpty()) return {};
    core::Result<DocumentPointer> loaded = loadDocument(records_.front().toStdString());
    if (!loaded) return loaded.error();
    other_ = *loaded;
    emit otherChanged();
    return {};
}

std::vector<std::string> Workspace::recordsWith(const std::string& path) const {
    std::vector<std::string> files{path};
    for (const QString& record : records_) files.push_back(record.toStdString());
    return files;
}

void Workspace::openStep(std::int64_t step) {
    if (document_ && !following_ && step != document_->step) reopen(step, {});
}

void Workspace::reload() {
    if (document_ && !following_) reopen(document_->step, active_ ? active_->planner : QString());
}

// Keeps the budget's share of the peak, the frontier and the planner that was looked at.
void Workspace::reopen(std::int64_t step, const QString& planner) {
    connect(
        this, &Workspace::documentChanged, this,
        [this, frontier = frontierWanted_, kept = budgetRatio(), planner,
         budget = active_ ? active_->budget : budget_] {
            setBudgetRatio(std::max(kept, ratio(document_->floor, document_->peak())));
            // By its bytes: a run measures costs, and with them the peak may be another.
            for (const PlanPointer& plan : document_->plans)
                if (plan->planner == planner && plan->measuredPeak && plan->budget == budget)
                    choose(plan);
            if (frontier) requestFrontier();
        },
        static_cast<Qt::ConnectionType>(Qt::QueuedConnection | Qt::SingleShotConnection));
    open(QString::fromStdString(document_->path), {}, step);
}

core::Status Workspace::openNow(const std::string& path, const std::vector<std::string>& planFiles,
                                std::optional<std::int64_t> step) {
    queue_.cancelAll();
    cancelPlans();
    core::Result<Loaded> loaded = load(path, planFiles, step);
    if (!loaded) return loaded.error();
    adopt(std::move(*loaded));
    return {};
}

void Workspace::adopt(Loaded loaded) {
    cancelPlans();
    attempts_.cancelAll();
    coarse_.cancelAll();
    document_ = std::move(loaded.document);
    files_ = std::move(loaded.files);
    plans_.clear();
    quickPlans_.clear();
    previewed_.reset();
    quickBudget_.reset();
    coarseRequested_ = false;
    infeasibleUpTo_ = {};
    chosen_ = files_.empty() ? nullptr : files_.front();
    live_ = nullptr;
    selection_ = {};
    range_.reset();
    const core::Bytes room = document_->peak() - document_->floor;
    const core::Bytes possible = document_->floor + core::Bytes(room.count() / 4);
    budget_ = chosen_ ? chosen_->budget : std::max(budgetAt(kDefaultRatio), possible);
    active_ = nullptr;
    activeChanges_ = nullptr;
    readers_.cancelAll();
    emit documentChanged();
    emit budgetChanged();
    updateActive();
    emit plansChanged();
}

double Workspace::budgetRatio() const {
    return document_ ? ratio(budget_, document_->peak()) : kDefaultRatio;
}

// Rounded down as on the command line, so that the same ratio means the same bytes.
core::Bytes Workspace::budgetAt(double ratio) const {
    return core::Bytes(static_cast<std::int64_t>(
        std::floor(static_cast<double>(document_->peak().count()) * ratio)));
}

QStringList Workspace::planners() {
    QStringList names;
    for (const planners::PlannerInfo& info : planners::plannerList()) names << toQString(info.name);
    return names;
}

void Workspace::selectOp(core::OpIndex op) {
    if (!document_ || op < core::kNone ||
        op >= static_cast<core::OpIndex>(document_->graph.ops.size()))
        return;
    if (op == core::kNone) return select(Selection{});
    select(Selection{Selection::Kind::Op, op, core::kNone, document_->graph.ops[op].layer});
}

void Workspace::selectStorage(core::StorageIndex storage) {
    if (!document_ || storage < 0 ||
        storage >= static_cast<core::StorageIndex>(document_->graph.storages.size()))
        return;
    const core::Storage& chosen = document_->graph.storages[storage];
    select(Selection{Selection::Kind::Tensor, chosen.creator, storage, chosen.layer});
}

void Workspace::selectLayer(core::LayerIndex layer) {
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

void Workspace::select(const Target& target) {
    switch (target.kind) {
        case Selection::Kind::None:
            return;
        case Selection::Kind::Op:
            return selectOp(target.index);
        case Selection::Kind::Tensor:
            return selectStorage(target.index);
        case Selection::Kind::Layer:
            return selectLayer(target.index);
    }
}

void Workspace::select(const Selection& selection) {
    if (selection == selection_) return;
    selection_ = selection;
    emit selectionChanged();
}

void Workspace::showLive(std::shared_ptr<const StepCurve> curve) {
    if (!document_ || curve == live_) return;
    live_ = std::move(curve);
    emit liveChanged();
}

void Workspace::selectRange(std::optional<TimeRange> range) {
    if (!document_ || range == range_) return;
    range_ = range;
    rangeFrom_ = core::kNone;
    emit rangeChanged();
}

void Workspace::setState(const WorkspaceState& state) {
    if (!document_) return;
    chosen_ = state.chosen;
    if (state.budget != budget_) {
        setBudget(state.budget);
    } else {
        updateActive();
        emit plansChanged();
    }
    select(state.selection);
    selectRange(state.range);
}

void Workspace::stepOp(int by) {
    if (!document_ || document_->graph.ops.empty()) return;
    const auto last = static_cast<core::OpIndex>(document_->graph.ops.size()) - 1;
    const core::OpIndex from = selectedOp() == core::kNone
                                   ? document_->curve.moments[document_->curve.peakMoment].op - by
                                   : selectedOp();
    selectOp(std::clamp<core::OpIndex>(from + by, 0, last));
}

void Workspace::stretchRange(int by) {
    if (!document_ || document_->graph.ops.empty()) return;
    if (selectedOp() == core::kNone) stepOp(0);
    if (!range_ || rangeFrom_ == core::kNone) rangeFrom_ = selectedOp();
    const core::OpIndex from = rangeFrom_;
    stepOp(by);
    const auto extent = [&](core::OpIndex op) {
        return extentOf(*document_, {Selection::Kind::Op, op, core::kNone, core::kNone});
    };
    const auto a = extent(from), b = extent(selectedOp());
    if (a && b) selectRange(TimeRange{std::min(a->begin, b->begin), std::max(a->end, b->end)});
    rangeFrom_ = from;
}

void Workspace::cancel() {
    queue_.cancelAll();
    attempts_.cancelAll();
    coarse_.cancelAll();
    coarseRequested_ = false;
    quickBudget_.reset();
    followLoading_ = false;
    cancelPlans();
    emit plansChanged();
}

}  // namespace hw::viewer

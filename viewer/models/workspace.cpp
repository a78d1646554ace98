// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/models/workspace.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace hw::viewer {

namespace {

// One of each kind: the reference, Chen et al., DTR, Echo, ours.
QStringList usualPlanners() {
    return {QStringLiteral("none"), QStringLiteral("chen-greedy"), QStringLiteral("dtr:eqclass"),
            QStringLiteral("echo"), QStringLiteral("highwater")};
}

// Those whose plan takes milliseconds even for thousands of ops.
bool isQuick(const QString& planner) {
    return planner == QLatin1String("none") || planner.startsWith(QLatin1String("chen-")) ||
           planner.startsWith(QLatin1String("dtr:"));
}

}  // namespace

Workspace::Workspace(QObject* parent) : QObject(parent) {
    selectPlanners(usualPlanners());
    for (TaskQueue* queue : {&queue_, &quick_})
        connect(queue, &TaskQueue::pendingChanged, this,
                [this] { emit busyChanged(queue_.pending() + quick_.pending(), working_); });
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
        const auto twin = std::find_if(stored.begin(), stored.end(), [&](const PlanPointer& other) {
            return samePlan(*other, **plan);
        });
        loaded.files.push_back(twin == stored.end() ? *plan : *twin);
    }
    return loaded;
}

void Workspace::open(const QString& path, const QStringList& planFiles,
                     std::optional<std::int64_t> step) {
    queue_.cancelAll();
    quick_.cancelAll();
    following_ = followLoading_ = false;
    plans_.clear();
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
        quick_.cancelAll();
        plans_.clear();
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
        [this, frontier = frontierWanted_, kept = budgetRatio(), planner] {
            setBudgetRatio(std::max(kept, ratio(document_->floor, document_->peak())));
            for (const PlanPointer& plan : document_->plans)
                if (plan->planner == planner && plan->measuredPeak &&
                    std::abs(ratio(plan->budget, document_->peak()) - kept) < 1e-6)
                    choose(plan);
            if (frontier) requestFrontier();
        },
        static_cast<Qt::ConnectionType>(Qt::QueuedConnection | Qt::SingleShotConnection));
    open(QString::fromStdString(document_->path), {}, step);
}

core::Status Workspace::openNow(const std::string& path, const std::vector<std::string>& planFiles,
                                std::optional<std::int64_t> step) {
    queue_.cancelAll();
    quick_.cancelAll();
    core::Result<Loaded> loaded = load(path, planFiles, step);
    if (!loaded) return loaded.error();
    adopt(std::move(*loaded));
    return {};
}

void Workspace::adopt(Loaded loaded) {
    document_ = std::move(loaded.document);
    files_ = std::move(loaded.files);
    plans_.clear();
    chosen_ = files_.empty() ? nullptr : files_.front();
    selection_ = {};
    range_.reset();
    const core::Bytes room = document_->peak() - document_->floor;
    const core::Bytes possible = document_->floor + core::Bytes(room.count() / 4);
    budget_ = chosen_ ? chosen_->budget : std::max(budgetAt(kDefaultRatio), possible);
    active_ = nullptr;
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
    const PlanPointer best = neighbour(budgetAt(ratio));
    if (!best || best == active_) return;
    active_ = best;
    emit activePlanChanged();
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
    budget_ = budget;
    emit budgetChanged();
    for (const QString& planner : selected_) request(planner, budget, true);
    updateActive();
    emit plansChanged();
}

void Workspace::planEvery() {
    if (!document_) return;
    for (const QString& planner : planners()) request(planner, budget_, true);
    emit plansChanged();
}

void Workspace::requestFrontier() {
    frontierWanted_ = true;
    if (!document_) return;
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
    TaskQueue& queue = isQuick(planner) ? quick_ : queue_;
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
    if (plan->budget != budget_) {
        budget_ = plan->budget;
        emit budgetChanged();
        for (const QString& planner : selected_) request(planner, budget_, true);
    }
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

void Workspace::selectOp(core::OpIndex op) {
    if (!document_ || op < core::kNone ||
        op >= static_cast<core::OpIndex>(document_->graph.ops.size()))
        return;
    if (op == core::kNone) return select({});
    select({Selection::Kind::Op, op, core::kNone, document_->graph.ops[op].layer});
}

void Workspace::selectStorage(core::StorageIndex storage) {
    if (!document_ || storage < 0 ||
        storage >= static_cast<core::StorageIndex>(document_->graph.storages.size()))
        return;
    const core::Storage& chosen = document_->graph.storages[storage];
    select({Selection::Kind::Tensor, chosen.creator, storage, chosen.layer});
}

void Workspace::selectLayer(core::LayerIndex layer) {
    if (!document_ || layer < 0 ||
        layer >= static_cast<core::LayerIndex>(document_->graph.layers.size()))
        return;
    const std::vector<core::Op>& ops = document_->graph.ops;
    const auto first = std::find_if(ops.begin(), ops.end(), [&](const core::Op& op) {
        return withinLayer(document_->graph, op.layer, layer);
    });
    select({Selection::Kind::Layer,
            first == ops.end() ? core::kNone : static_cast<core::OpIndex>(first - ops.begin()),
            core::kNone, layer});
}

void Workspace::select(const Selection& selection) {
    if (selection == selection_) return;
    selection_ = selection;
    emit selectionChanged();
}

void Workspace::selectRange(std::optional<TimeRange> range) {
    if (!document_ || range == range_) return;
    range_ = range;
    emit rangeChanged();
}

void Workspace::stepOp(int by) {
    if (!document_ || document_->graph.ops.empty()) return;
    const auto last = static_cast<core::OpIndex>(document_->graph.ops.size()) - 1;
    const core::OpIndex from = selectedOp() == core::kNone
                                   ? document_->curve.moments[document_->curve.peakMoment].op - by
                                   : selectedOp();
    selectOp(std::clamp<core::OpIndex>(from + by, 0, last));
}

void Workspace::cancel() {
    queue_.cancelAll();
    quick_.cancelAll();
    followLoading_ = false;
    std::erase_if(plans_, [](const auto& item) { return !item.second; });
    emit plansChanged();
}

}  // namespace hw::viewer

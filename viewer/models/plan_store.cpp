// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/models/plan_store.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "planners/registry.h"

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

QStringList plannerNames() {
    QStringList names;
    for (const planners::PlannerInfo& info : planners::plannerList()) names << toQString(info.name);
    return names;
}

void PlanStore::reset(DocumentPointer document, std::vector<PlanPointer> files) {
    document_ = std::move(document);
    files_ = std::move(files);
    computed_.clear();
    quick_.clear();
    quickInfeasibleUpTo_ = {};
    preferred_.clear();
}

bool PlanStore::request(const QString& planner, core::Bytes budget) {
    return computed_.emplace(Key{planner, budget.count()}, nullptr).second;
}

void PlanStore::withdraw(const QString& planner, core::Bytes budget) {
    computed_.erase({planner, budget.count()});
}

void PlanStore::withdrawAll() {
    std::erase_if(computed_, [](const auto& item) { return !item.second; });
}

bool PlanStore::awaits(core::Bytes budget) const {
    return std::any_of(computed_.begin(), computed_.end(), [budget](const auto& item) {
        return item.first.second == budget.count() && !item.second;
    });
}

void PlanStore::add(const PlanPointer& plan) {
    computed_[{plan->planner, plan->budget.count()}] = plan;
}

void PlanStore::addQuick(const PlanPointer& plan) {
    if (!plan->ok()) {
        if (plan->planner == toQString(planners::ownPlanner().name) &&
            plan->status != planners::PlanStatus::Cancelled)
            quickInfeasibleUpTo_ = std::max(quickInfeasibleUpTo_, plan->budget);
        return;
    }
    const auto worse = [](const PlanPointer& a, const PlanPointer& b) {
        return a->peak >= b->peak && a->overhead >= b->overhead;
    };
    std::erase_if(quick_, [&](const PlanPointer& other) { return worse(other, plan); });
    if (std::none_of(quick_.begin(), quick_.end(),
                     [&](const PlanPointer& other) { return worse(plan, other); }))
        quick_.push_back(plan);
}

PlanPointer PlanStore::computed(const QString& planner, core::Bytes budget) const {
    const auto found = computed_.find({planner, budget.count()});
    return found == computed_.end() ? nullptr : found->second;
}

std::vector<PlanPointer> PlanStore::given() const {
    std::vector<PlanPointer> plans;
    if (document_) plans = document_->plans;
    for (const PlanPointer& file : files_)
        if (std::find(plans.begin(), plans.end(), file) == plans.end()) plans.push_back(file);
    return plans;
}

std::vector<PlanPointer> PlanStore::known() const {
    std::vector<PlanPointer> plans;
    for (const auto& [key, plan] : computed_)
        if (plan) plans.push_back(plan);
    const std::vector<PlanPointer> others = given();
    plans.insert(plans.end(), others.begin(), others.end());
    return plans;
}

std::vector<double> PlanStore::frontierRatios() const {
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

std::vector<PlanPointer> PlanStore::frontier(const QString& planner) const {
    std::vector<PlanPointer> points;
    for (const auto& [key, plan] : computed_)
        if (key.first == planner && plan && plan->ok()) points.push_back(plan);
    std::sort(points.begin(), points.end(),
              [](const PlanPointer& a, const PlanPointer& b) { return a->budget > b->budget; });
    return points;
}

std::vector<PlanRow> PlanStore::rows(core::Bytes budget) const {
    std::vector<PlanRow> rows;
    std::vector<PlanPointer> plans = given();
    // A stored plan of the same planner and budget says more than a fresh one: it was run.
    const auto othersFrom =
        std::stable_partition(plans.begin(), plans.end(),
                              [budget](const PlanPointer& plan) { return plan->budget == budget; });
    const QStringList planners = plannerNames();
    for (const QString& planner : planners) {
        const std::size_t before = rows.size();
        for (auto plan = plans.begin(); plan != othersFrom; ++plan)
            if ((*plan)->planner == planner) rows.push_back({planner, *plan});
        const auto found = computed_.find({planner, budget.count()});
        if (found != computed_.end() && rows.size() == before)
            rows.push_back({planner, found->second});
    }
    for (auto plan = plans.begin(); plan != othersFrom; ++plan)
        if (!planners.contains((*plan)->planner)) rows.push_back({(*plan)->planner, *plan});
    std::stable_sort(othersFrom, plans.end(), [](const PlanPointer& a, const PlanPointer& b) {
        return a->budget > b->budget;
    });
    for (auto plan = othersFrom; plan != plans.end(); ++plan)
        rows.push_back({(*plan)->planner, *plan});
    return rows;
}

// The preferred planner goes first, and among equals a plan that was made for this very budget.
PlanPointer PlanStore::cheapest(core::Bytes budget) const {
    PlanPointer best;
    const auto rank = [&](const PlanEntry& plan) {
        return std::tuple(!preferred_.isEmpty() && plan.planner == preferred_ ? 0 : 1,
                          shownOverhead(plan), plan.budget == budget ? 0 : 1, plan.overhead);
    };
    const auto consider = [&](const PlanPointer& plan) {
        if (plan->ok() && plan->peak <= budget && (!best || rank(*plan) < rank(*best))) best = plan;
    };
    for (const PlanPointer& plan : known()) consider(plan);
    for (const PlanPointer& plan : quick_) consider(plan);
    return best;
}

Answer PlanStore::answer(core::Bytes budget) const {
    if (budget < document_->floor) return {Answer::Kind::Infeasible, nullptr};
    if (PlanPointer fits = cheapest(budget)) return {Answer::Kind::Fits, std::move(fits)};
    Answer answer;
    const auto consider = [&](const PlanPointer& plan) {
        if (plan && plan->ok() && (!answer.plan || plan->peak < answer.plan->peak))
            answer.plan = plan;
    };
    for (const auto& [key, plan] : computed_) {
        consider(plan);
        if (plan && provesInfeasible(*plan) && plan->budget >= budget)
            return {Answer::Kind::Infeasible, plan};
    }
    for (const PlanPointer& plan : quick_) consider(plan);
    return answer;
}

std::optional<core::Nanoseconds> PlanStore::provenBound(core::Bytes budget) const {
    std::optional<core::Nanoseconds> best;
    for (const PlanPointer& plan : known()) {
        const bool proof = plan->lowerBound && !plan->baseline();
        if (proof && plan->budget >= budget && plan->header.implementations.empty())
            best = std::max(best.value_or(core::Nanoseconds(0)), *plan->lowerBound);
    }
    return best;
}

std::optional<double> PlanStore::gap(const PlanPointer& plan) const {
    if (!plan->ok()) return std::nullopt;
    const bool captured = plan->header.implementations.empty();
    const auto bound = captured ? provenBound(plan->budget) : plan->lowerBound;
    if (!bound) return std::nullopt;
    return std::max(0.0, plan->overhead - ratio(*bound, document_->judged.time));
}

PlanPointer PlanStore::farCheaper(const PlanPointer& plan) const {
    constexpr double kPoints = 0.05, kShare = 0.5;
    PlanPointer best;
    for (const PlanPointer& other : known()) {
        const bool fits = other->ok() && other->peak <= plan->budget;
        if (fits && (!best || other->overhead < best->overhead)) best = other;
    }
    const bool far = best && plan->overhead - best->overhead >= kPoints &&
                     best->overhead - 1 <= (plan->overhead - 1) * kShare;
    return far ? best : nullptr;
}

std::optional<double> PlanStore::planningSeconds(const PlanPointer& plan) const {
    if (plan->solveSeconds) return plan->solveSeconds;
    const PlanPointer same = computed(plan->planner, plan->budget);
    return same && samePlan(*same, *plan) ? same->solveSeconds : std::nullopt;
}

}  // namespace hw::viewer

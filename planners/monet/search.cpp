// SPDX-License-Identifier: MIT
#include "planners/monet/search.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "planners/monet/menu.h"
#include "planners/program/cut_relaxation.h"
#include "planners/schedule/lookahead.h"

namespace hw::planners {

using namespace hw::core;

namespace {

constexpr std::size_t kPool = 6;             // plans that are kept
constexpr int kRounds = 6;                   // of annealing and of changes of the choice, in turn
constexpr double kExploring = 0.4;           // of the work, before the rounds
constexpr double kHottest = 2e-4;            // temperature, as a share of the baseline's time
constexpr double kRelaxShare = 0.2;          // of the seconds, for a relaxation
constexpr std::int64_t kMovesOfAMatrix = 8;  // moves that a new matrix is worth, for each item
constexpr StageIndex kBlock = 12;            // ops whose choices change together at the most

}  // namespace

JointSearch::JointSearch(const TrainingGraph& captured, const Menu& menu, Bytes budget,
                         std::uint64_t seed, std::function<bool()> stopped)
    : captured_(captured),
      menu_(menu),
      budget_(budget),
      seed_(seed),
      stopped_(std::move(stopped)),
      random_(seed + 7) {
    for (const Implementation& one : menu.implementations)
        if (one.kind == ImplementationKind::Algorithm)
            algorithms_ = true;
        else
            dataflow_.push_back(&one);
}

bool JointSearch::done() const {
    if (stopped_() || work_.secondsLeft() <= 0) return true;
    return !pool_.empty() && best().fits() && best().time <= enough_;
}

WorkBudget JointSearch::workShare(double share) const {
    if (work_.countsMoves())
        return {static_cast<std::int64_t>(static_cast<double>(work_.moves) * share) + 1};
    return {.seconds = std::min(work_.seconds * share, work_.secondsLeft())};
}

JointPlan JointSearch::run(const std::vector<JointPlan>& warm, const WorkBudget& work,
                           Nanoseconds enough) {
    work_ = work;
    enough_ = enough;
    for (const JointPlan& plan : warm) {
        offer(plan);
        StageJudge judge(plan.implemented->model, budget_);
        judge.load(plan.retention);
        if (algorithms_) take(judge, plan);
    }
    std::map<ImplementationChoice, JointPlan> flows;  // the best start of each flow of data
    for (const ImplementationChoice& choice : starts()) {
        if (!pool_.empty() && done()) return best();
        for (JointPlan& plan : start(choice, warm)) {
            const auto [at, isNew] = flows.try_emplace(flowOf(choice), plan);
            if (!isNew && plan < at->second) at->second = std::move(plan);
        }
    }
    explore(flows);
    const double share = (1 - kExploring) / kRounds;
    for (int round = 0; round < kRounds && !done(); ++round) {
        const double hot = kHottest * std::pow(0.5, round);
        const Cooling cooling{hot, hot / 30};
        const double parts = 1.0 + (algorithms_ ? 1.0 : 0.0) + (dataflow_.empty() ? 0.0 : 1.0);
        anneal(JointPlan(best()), cooling, workShare(share / parts));
        if (algorithms_ && !done())
            withSmallWorkspaces(JointPlan(best()), cooling, workShare(share / parts));
        if (!dataflow_.empty() && !done()) changeChoices(workShare(share / parts));
    }
    return best();
}

// Every flow of data gets its share before the best of them gets the rest: fresh plans of a good
// flow are worse than annealed ones of a poor flow.
void JointSearch::explore(const std::map<ImplementationChoice, JointPlan>& flows) {
    const double share = kExploring / static_cast<double>(flows.size());
    for (const auto& [flow, plan] : flows) {
        if (done()) return;
        JointPlan relaxed = relax(plan, kRelaxShare / static_cast<double>(flows.size()));
        const JointPlan& better = relaxed < plan ? relaxed : plan;
        if (better.fits())
            anneal(better, {kHottest, kHottest / 30}, workShare(share));
        else
            shrink(better, workShare(share));
    }
}

void JointSearch::offer(JointPlan plan) {
    const auto at = std::upper_bound(pool_.begin(), pool_.end(), plan);
    pool_.insert(at, std::move(plan));
    if (pool_.size() > kPool) pool_.pop_back();
}

std::shared_ptr<const ImplementedGraph> JointSearch::implement(
    const ImplementationChoice& choice) const {
    auto graph = applyImplementations(captured_, menu_, choice);
    return graph ? std::make_shared<const ImplementedGraph>(std::move(*graph)) : nullptr;
}

// Adds as many of the entries as go together, halving what does not.
void JointSearch::addAll(ImplementationChoice& choice,
                         const std::vector<const Implementation*>& entries) const {
    if (entries.empty()) return;
    ImplementationChoice wanted = choice;
    for (const Implementation* one : entries) wanted.emplace(one->op, one->name);
    if (applyImplementations(captured_, menu_, wanted)) {
        choice = std::move(wanted);
        return;
    }
    if (entries.size() == 1) return;
    const auto middle = entries.begin() + static_cast<std::ptrdiff_t>(entries.size() / 2);
    addAll(choice, {entries.begin(), middle});
    addAll(choice, {middle, entries.end()});
}

// Every kind of change in the flow of data alone and all together, each with the captured, the
// fastest and the leanest algorithms.
std::vector<ImplementationChoice> JointSearch::starts() const {
    std::vector<ImplementationChoice> flows(1);
    const auto ofKind = [&](ImplementationKind kind) {
        std::vector<const Implementation*> entries;
        for (const Implementation* one : dataflow_)
            if (one->kind == kind) entries.push_back(one);
        return entries;
    };
    ImplementationChoice together;
    for (const auto kind : {ImplementationKind::InPlace, ImplementationKind::OutputActivated,
                            ImplementationKind::IntermediateActivated}) {
        const auto entries = ofKind(kind);
        if (entries.empty()) continue;
        addAll(together, entries);
        flows.emplace_back();
        addAll(flows.back(), entries);
    }
    flows.push_back(together);
    std::vector<ImplementationChoice> choices = flows;
    for (const Preference preference : {Preference::Time, Preference::Workspace})
        for (const ImplementationChoice& flow : flows)
            choices.push_back(withAlgorithms(captured_, menu_, flow, preference));
    std::vector<ImplementationChoice> distinct;
    for (ImplementationChoice& choice : choices)
        if (std::find(distinct.begin(), distinct.end(), choice) == distinct.end())
            distinct.push_back(std::move(choice));
    return distinct;
}

// Plans under a choice: a fresh one, and those of `warm` carried over.
std::vector<JointPlan> JointSearch::start(const ImplementationChoice& choice,
                                          const std::vector<JointPlan>& warm) {
    JointPlan plan;
    plan.choice = choice;
    plan.implemented = implement(choice);
    if (!plan.implemented) return {};
    StageJudge judge(plan.implemented->model, budget_);
    std::vector<JointPlan> plans{fitted(judge, plan)};
    for (const JointPlan& known : warm) {
        StageJudge old(known.implemented->model, budget_);
        old.load(known.retention);
        transferRetention(old, judge);
        plans.push_back(fitted(judge, plan));
    }
    return plans;
}

JointPlan JointSearch::fitted(StageJudge& judge, const JointPlan& of) {
    judge.trim();
    if (judge.overflow() > Bytes(0)) lookahead(judge, Distance::Root, {}, stopped_);
    return take(judge, of);
}

// The choice without algorithms.
ImplementationChoice JointSearch::flowOf(const ImplementationChoice& choice) const {
    ImplementationChoice flow;
    for (const Implementation* one : dataflow_)
        if (const auto at = choice.find(one->op); at != choice.end() && at->second == one->name)
            flow.insert(*at);
    return flow;
}

JointPlan JointSearch::take(StageJudge& judge, const JointPlan& of) {
    JointPlan plan = withFittingAlgorithms(judge, of);
    offer(plan);
    return plan;
}

JointPlan JointSearch::withFittingAlgorithms(StageJudge& judge, const JointPlan& of) const {
    judge.trim();
    JointPlan plan{of.choice, of.implemented, judge.retention(), judge.time(), judge.overflow()};
    if (!algorithms_) return plan;
    ImplementationChoice fitting = fittingAlgorithms(
        captured_, menu_, of.choice, of.implemented->graph, judge.schedule(), budget_);
    if (fitting == of.choice) return plan;
    JointPlan refitted{fitting, implement(fitting), plan.retention, {}, {}};
    if (!refitted.implemented) return plan;
    StageJudge again(refitted.implemented->model, budget_);
    again.load(refitted.retention);
    refitted.time = again.time();
    refitted.overflow = again.overflow();
    return refitted < plan ? refitted : plan;
}

// What a relaxation with one cut would keep, as a further plan.
JointPlan JointSearch::relax(const JointPlan& plan, double share) {
    StageJudge judge(plan.implemented->model, budget_);
    judge.trim();
    CutOptions options;
    options.limits = work_.countsMoves() ? SolveLimits::deterministic(100)
                                         : SolveLimits{.seconds = share * work_.seconds};
    options.cancelled = stopped_;
    if (judge.overflow() == Bytes(0) || options.limits.seconds < 0.02) return plan;
    const std::vector<StageIndex> cuts{judge.highestStage()};
    const auto solution = solveCuts(plan.implemented->model, budget_, cuts, options);
    if (!solution || solution->resident.empty()) return plan;
    importResidents(judge, cuts, solution->resident);
    return fitted(judge, plan);
}

// Anneals at a budget that shrinks step by step, from the matrix that keeps everything.
void JointSearch::shrink(const JointPlan& plan, const WorkBudget& work) {
    constexpr double kStep = 0.9, kHot = 1e-3;
    StageJudge judge(plan.implemented->model, budget_);
    judge.trim();
    const double peak = static_cast<double>(judge.peak().count());
    const auto wanted = static_cast<double>(budget_.count());
    const int steps =
        std::max(1, static_cast<int>(std::ceil(std::log(wanted / peak) / std::log(kStep))));
    Annealing annealing(judge, seed_ ^ random_());
    for (int step = steps - 1; step >= 0 && !done(); --step) {
        const WorkBudget part{work.countsMoves() ? (work.moves - 1) / steps + 1 : work.moves,
                              work.secondsLeft() / (step + 1)};
        judge.setBudget(Bytes(static_cast<std::int64_t>(wanted / std::pow(kStep, step))));
        annealing.forget();
        annealing.run({kHot, step == 0 ? 1e-6 : kHot / 30},
                      [&](std::int64_t moves) { return done() ? 1.0 : part.spent(moves); });
    }
    judge.setBudget(budget_);
    if (!annealing.best().empty()) judge.load(annealing.best());
    take(judge, plan);
}

void JointSearch::anneal(const JointPlan& plan, const Cooling& cooling, const WorkBudget& work) {
    StageJudge judge(plan.implemented->model, budget_);
    judge.load(plan.retention);
    Annealing annealing(judge, seed_ ^ random_());
    annealing.run(cooling, [&](std::int64_t moves) {
        if (stopped_() || annealing.bestTime() <= enough_) return 1.0;
        return work.spent(moves);
    });
    if (!annealing.best().empty()) judge.load(annealing.best());
    take(judge, plan);
}

// The algorithms that fit a matrix leave it no room to change: anneals beside the leanest ones.
void JointSearch::withSmallWorkspaces(const JointPlan& plan, const Cooling& cooling,
                                      const WorkBudget& work) {
    JointPlan lean = plan;
    lean.choice = withAlgorithms(captured_, menu_, plan.choice, Preference::Workspace);
    lean.implemented = implement(lean.choice);
    if (lean.implemented) anneal(lean, cooling, work);
}

// Gives some ops near each other another implementation, or the captured one again.
bool JointSearch::change(ImplementationChoice& choice) {
    const Implementation* chosen = dataflow_[random_() % dataflow_.size()];
    const bool back = random_() % 2 == 0;
    const StageIndex reach = random_() % 2 == 0 ? 0 : static_cast<StageIndex>(random_() % kBlock);
    bool changed = false;
    for (const Implementation* one : dataflow_) {
        if (one->kind != chosen->kind || one->op < chosen->op || one->op > chosen->op + reach)
            continue;
        const auto present = choice.find(one->op);
        const bool has = present != choice.end() && present->second == one->name;
        if (has != back) continue;
        if (back)
            choice.erase(one->op);
        else
            choice[one->op] = one->name;
        if (one->backward != kNone && (one->backwardTime || one->backwardWorkspace))
            choice.erase(one->backward);
        changed = true;
    }
    return changed;
}

void JointSearch::changeChoices(const WorkBudget& work) {
    const auto items = static_cast<std::int64_t>(best().implemented->model.itemCount() + 1);
    std::int64_t used = 0;
    while (work.spent(used) < 1 && !done()) {
        const JointPlan present = best();
        JointPlan changed;
        changed.choice = present.choice;
        used += items;
        if (!change(changed.choice)) continue;
        changed.implemented = implement(changed.choice);
        if (!changed.implemented) continue;
        StageJudge before(present.implemented->model, budget_),
            judge(changed.implemented->model, budget_);
        before.load(present.retention);
        transferRetention(before, judge);
        if (judge.overflow() > Bytes(0)) lookahead(judge, Distance::Root, {}, stopped_);
        const std::int64_t moves = kMovesOfAMatrix * items;
        used += moves;
        Annealing annealing(judge, seed_ ^ random_());
        annealing.run({3e-5, 1e-6}, [&](std::int64_t count) {
            return done() ? 1.0 : static_cast<double>(count) / static_cast<double>(moves);
        });
        if (!annealing.best().empty()) judge.load(annealing.best());
        take(judge, changed);
    }
}

}  // namespace hw::planners

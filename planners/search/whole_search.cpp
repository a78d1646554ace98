// SPDX-License-Identifier: MIT
#include "planners/search/whole_search.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <thread>

#include "planners/program/cut_relaxation.h"
#include "planners/program/knapsack_bound.h"
#include "planners/schedule/lookahead.h"
#include "planners/search/annealing.h"
#include "planners/search/budget_continuation.h"
#include "planners/search/candidates.h"
#include "planners/search/first_plans.h"
#include "planners/search/recombination.h"
#include "planners/search/search_request.h"
#include "planners/search/segment_plans.h"
#include "planners/search/shown_gap.h"

namespace hw::planners {
namespace {

using namespace hw::core;

constexpr std::size_t kThreads = 2;      // under a work limit: plans must not depend on the machine
constexpr std::size_t kMostThreads = 8;  // otherwise, as far as there are cores
constexpr double kCutShare = 0.35;       // of the time, for the relaxations
constexpr std::size_t kMostCuts = 4;
constexpr double kExploringShare = 0.4;  // of the time after the relaxations
constexpr std::array kCooling{Cooling{3e-4, 3e-6}, Cooling{1e-5, 1e-6}};  // first round, last one
constexpr std::int64_t kMovesPerItem = 1500;                              // of one continuation
constexpr std::size_t kPoolSize = 64;          // candidates that are kept
constexpr int kSnapshots = 60;                 // of a round's annealing, for recombination
constexpr std::size_t kPairWords = 5'000'000;  // work of one recombination
constexpr std::size_t kLeastWidth = 4;         // and how narrow it may become
constexpr std::size_t kLeastPairs = 2;

class WholeSearch {
public:
    WholeSearch(const TrainingGraph& graph, const PlanRequest& request, const Progress& progress)
        : graph_(graph),
          request_(request),
          progress_(progress),
          limit_(timeOf(request).seconds),
          firstOnly_(firstPlanOnly(request)),
          model_(graph),
          candidates_(graph, request.budget),
          firstPlans_(
              model_, request, progress, [this] { return stopped(); }, [this] { return left(); },
              candidates_) {}

    Proposal run() {
        StageJudge judge(model_, request_.budget);
        judge.trim();
        relaxed_ = judge.retention();
        highest_ = judge.highestStage();
        bound_ = graph_.totalTime().count();
        if (judge.overflow() == Bytes(0)) {
            candidates_.offer(judge);
        } else {
            if (request_.warmStart) {
                candidates_.keep(*request_.warmStart);
                judge.load(*request_.warmStart);
                candidates_.offer(judge);
            }
            if (firstOnly_) {
                firstPlans_.offerAll(true);
                return conclude();
            }
            if (request_.workLimit) {  // one after the other: the same result every time
                relax();
                planSegments();
                firstPlans_.offerAll(false);
                exploreAlone();
            } else {
                std::jthread cuts([&] {
                    relax();
                    relaxationsDone_ = true;
                });
                planSegments();
                firstPlans_.offerAll(false);
                exploreAlone();
            }
            if (!impossible_) improve();
        }
        return conclude();
    }

private:
    bool stopped() const { return progress_.cancelled() || (isTimed(request_) && left() <= 0); }
    double left() const { return time_.secondsLeft(); }
    // Only one thread raises it, the others read it.
    void raiseBound(Nanoseconds bound) { bound_ = std::max(bound_.load(), bound.count()); }
    /// As good as any plan can be, to the digits shown.
    bool proven(Nanoseconds time) const {
        return haveSolver() && noGapShown(time, Nanoseconds(bound_), graph_.totalTime());
    }

    void report(double share) {
        const std::optional<Candidate> best = candidates_.best();
        std::string text = "looking for a first plan";
        if (best && best->fits())
            text = progressLine(best->time, Nanoseconds(bound_), graph_.totalTime());
        progress_.report(std::min(share, 1.0), text);
    }

    // The solver simplifies a program before it looks at the clock.
    bool takesTooLong() const {
        constexpr double kSecondsPerItem = 3e-4;
        return !request_.workLimit &&
               kSecondsPerItem * static_cast<double>(model_.itemCount()) > limit_ * kCutShare;
    }
    /// The annealing beside the relaxations has found what cannot be improved.
    bool solvedBesides() const { return solved_ && !request_.workLimit; }

    // Step 2.
    void relax() {
        if (!haveSolver()) return;
        if (takesTooLong()) {
            const PartsBound proven = boundByKnapsack(model_, request_.budget, highest_);
            raiseBound(proven.bound);
            impossible_ = proven.impossible;
            return;
        }
        std::vector<StageIndex> cuts{highest_};
        while (cuts.size() <= kMostCuts && !progress_.cancelled() && !solvedBesides()) {
            CutOptions options;
            if (request_.workLimit)
                options.limits = SolveLimits::deterministic(200);
            else
                options.limits.seconds =
                    (limit_ * kCutShare - time_.passed()) * (cuts.size() == 1 ? 0.7 : 1.0);
            if (options.limits.seconds < 0.02) return;
            options.cancelled = [this] { return progress_.cancelled() || solvedBesides(); };
            const auto solution = solveCuts(model_, request_.budget, cuts, options);
            if (!solution) return;
            if (solution->status == SolveStatus::Infeasible) {
                impossible_ = true;
                return;
            }
            raiseBound(solution->bound);
            if (solution->resident.empty()) return;
            StageJudge judge(model_, request_.budget);
            importResidents(judge, cuts, solution->resident);
            imports_.push_back(judge.retention());
            candidates_.offer(judge);
            const StageIndex worst = judge.highestStage();
            const bool fits = judge.overflow() == Bytes(0);
            if (!fits) firstPlans_.walk(judge, Distance::Root);
            const auto at = std::lower_bound(cuts.begin(), cuts.end(), worst);
            if (fits || (at != cuts.end() && *at == worst)) return;
            cuts.insert(at, worst);
        }
    }

    void planSegments() {
        segmented_ = firstPlans_.offerFilled();
        if (!haveSolver() || takesTooLong()) return;
        const auto stop = [this] {
            return stopped() || impossible_ ||
                   (!request_.workLimit && time_.passed() > limit_ * kCutShare);
        };
        std::optional<Candidate> solved =
            segmentPlans(model_, request_.budget, highest_, stop, candidates_);
        if (solved && (!segmented_ || *solved < *segmented_)) segmented_ = std::move(solved);
    }

    // Step 3: one long round in which budgets shrink to the wanted one again and again, then
    // short ones that recombine what was found and anneal it, each cooler than the one before.
    void improve() {
        const double exploring = std::max(0.1, left()) * kExploringShare;
        round([&](std::size_t thread, StageJudge& judge, Annealing& annealing, Found& found) {
            const WorkBudget all = workBudget(exploring, 2.0 / 6);
            if (candidates_.all().front().fits() && thread == 0 && !isSmall(model_))
                anneal(annealing, {5e-4, 2e-5}, all, found);
            else
                explore(thread, judge, annealing, all, found);
        });
        // Small graphs have many valleys, large ones need long walks.
        const int rounds = isSmall(model_) ? 12 : 4, exploringRounds = isSmall(model_) ? 9 : 0;
        const double seconds = std::max(0.1, left()) / rounds;
        for (int r = 0; r < rounds; ++r) {
            const double share = static_cast<double>(r) / (rounds - 1);
            const auto between = [&](double Cooling::*end) {
                return kCooling[0].*end * std::pow(kCooling[1].*end / kCooling[0].*end, share);
            };
            const Cooling cooling{between(&Cooling::hot), between(&Cooling::cold)};
            round([&](std::size_t thread, StageJudge& judge, Annealing& annealing, Found& found) {
                const WorkBudget all = workBudget(seconds, 3.0 / 6 / rounds);
                if (thread == 0) recombineFound(judge);
                if (thread == 1 && r < exploringRounds)
                    explore(threads_ * static_cast<std::size_t>(r), judge, annealing, all, found);
                else
                    anneal(annealing, cooling, all, found);
            });
        }
    }

    // While the relaxations are solved on the other core.
    void exploreAlone() {
        StageJudge judge(model_, request_.budget);
        Annealing annealing(judge, seed(threads_));
        Found found;
        explore(threads_, judge, annealing, workBudget(limit_ * kCutShare, 1.0 / 6), found);
        candidates_.offer(std::move(found.plans));
    }

    /// What one thread of a round finds.
    struct Found {
        std::vector<Candidate> plans;
        std::vector<RetentionMatrix>
            snapshots;  // of the annealing on its way, within the budget or not
    };

    // One task on every thread, each with a judge of its own that begins with one of the
    // best so far: deterministic as long as the tasks are.
    template <class Work>
    void round(Work work) {
        if (stopped() || solved()) return;
        candidates_.prune(kPoolSize);
        const std::vector<Candidate>& pool = candidates_.all();
        std::vector<Found> found(threads_);
        {
            std::vector<std::jthread> threads;
            threads.reserve(threads_);
            for (std::size_t t = 0; t < threads_; ++t)
                threads.emplace_back([&, t] {
                    StageJudge judge(model_, request_.budget);
                    judge.load(pool[std::min(t, pool.size() - 1)].retention);
                    Annealing annealing(judge, seed(t));
                    work(t, judge, annealing, found[t]);
                });
        }
        snapshots_.clear();
        for (Found& of : found) {
            candidates_.offer(std::move(of.plans));
            std::move(of.snapshots.begin(), of.snapshots.end(), std::back_inserter(snapshots_));
        }
        ++rounds_;
        report(time_.passed() / limit_);
    }

    // Puts the best combination of all that is known in place of the judge's matrix, if there is
    // one.
    void recombineFound(StageJudge& judge) const {
        const Candidate before(judge);
        const std::size_t stages = static_cast<std::size_t>(model_.end) + 1;
        const std::size_t pairs = kPairWords / (stages * (model_.itemCount() / 64 + 1));
        if (pairs < kLeastPairs) return;  // it would take longer than it may
        const auto width =
            std::max(kLeastWidth, static_cast<std::size_t>(std::sqrt(static_cast<double>(pairs))));
        std::vector<RetentionMatrix> plans;
        for (const Candidate& candidate : candidates_.all()) plans.push_back(candidate.retention);
        plans.insert(plans.end(), snapshots_.begin(), snapshots_.end());
        if (plans.size() > 3 * width) plans.resize(3 * width);
        if (recombine(judge, plans, width, [&] { return stopped(); })) {
            judge.trim();
            if (!(before < Candidate(judge))) return;
        }
        judge.load(before.retention);
    }

    bool solved() const {
        return std::any_of(
            candidates_.all().begin(), candidates_.all().end(),
            [&](const Candidate& candidate) { return candidate.fits() && proven(candidate.time); });
    }

    /// `seconds`, or `share` of the work limit.
    WorkBudget workBudget(double seconds, double share) const {
        WorkBudget made;
        if (request_.workLimit)
            made.moves =
                static_cast<std::int64_t>(static_cast<double>(*request_.workLimit) * 1000 * share);
        else
            made.seconds = seconds;
        return made;
    }

    double ended(const Annealing& annealing, std::int64_t moves, const WorkBudget& all) {
        const bool enough = proven(annealing.bestTime());
        // On the way down to the budget a plan may be faster than the bound allows within it.
        if (enough && annealing.judge().budget() <= request_.budget) solved_ = true;
        return stopped() || enough ? 1.0 : all.spent(moves);
    }

    void anneal(Annealing& annealing, const Cooling& cooling, const WorkBudget& all, Found& found) {
        annealing.run(cooling, [&](std::int64_t moves) {
            const double share = ended(annealing, moves, all);
            if (share * kSnapshots > static_cast<double>(found.snapshots.size() + 1))
                found.snapshots.push_back(annealing.judge().retention());
            return share;
        });
        note(annealing, found);
    }

    // Takes what the annealing found as a plan, and the judge to it.
    static void note(Annealing& annealing, Found& found) {
        StageJudge& judge = annealing.judge();
        if (!annealing.best().empty()) judge.load(annealing.best());
        judge.trim();
        found.plans.emplace_back(judge);
    }

    // Budget continuation again and again, each time with other temperatures and steps, from what
    // the relaxations would keep and from all.
    void explore(std::size_t lane, StageJudge& judge, Annealing& annealing, const WorkBudget& all,
                 Found& found) {
        const Candidate known = *candidates_.best();
        const auto movesOfOne = kMovesPerItem * static_cast<std::int64_t>(model_.itemCount() + 1);
        const bool alone = lane == threads_ && rounds_ == 0;  // beside the relaxations
        std::int64_t used = 0;
        for (std::size_t run = lane; all.spent(used) < 1 && !stopped(); run += threads_) {
            const WorkBudget one = all.rest(used, movesOfOne);
            used += one.moves + 1;
            continueBudget(start(run, alone), run, judge, annealing, one,
                           [&](std::int64_t moves, const WorkBudget& part) {
                               return ended(annealing, moves, part);
                           });
            note(annealing, found);
            if (found.plans.back().fits() && proven(found.plans.back().time)) break;
            if (alone && relaxationsDone_ && !request_.workLimit) break;
            if (!isSmall(model_) &&
                farFrom(known, found.plans.back())) {  // more time than there is
                judge.load(known.retention);
                annealing.forget();
                anneal(annealing, {5e-4, 2e-5}, all.rest(used, INT64_MAX), found);
                break;
            }
        }
    }

    /// What a continuation begins with: what plans of segments keep first where they are the best
    /// that is known, otherwise late.
    const RetentionMatrix& start(std::size_t run, bool alone) const {
        const bool lead = segmented_ && !(*candidates_.best() < *segmented_);
        if (alone || imports_.empty())
            return lead && run / threads_ % 2 == 1 ? segmented_->retention : relaxed_;
        if (run % 3 == 2) return relaxed_;
        if (segmented_ && run % 6 == (lead ? 1 : 4)) return segmented_->retention;
        return run % 3 == 0 ? imports_.back() : imports_.front();
    }

    static bool farFrom(const Candidate& known, const Candidate& made) {
        return known.fits() && (!made.fits() || made.time.count() > known.time.count() * 1.1);
    }

    std::uint64_t seed(std::size_t thread) const {
        return request_.seed * 1000003 + rounds_ * threads_ + thread;
    }

    Proposal conclude() {
        Proposal proposal;
        StageJudge judge(model_, request_.budget);
        if (progress_.cancelled()) {
            proposal = refusal(PlanStatus::Cancelled, "cancelled");
        } else if (impossible_) {
            proposal = impossible();
        } else if (std::optional<Schedule> schedule = candidates_.schedule(judge)) {
            proposal.status = PlanStatus::Ok;
            proposal.schedule = std::move(*schedule);
        } else {
            proposal = noneInTime();
        }
        if (haveSolver() && !firstOnly_) proposal.lowerBound = Nanoseconds(bound_);
        return proposal;
    }

    const TrainingGraph& graph_;
    const PlanRequest& request_;
    const std::size_t threads_ =
        request_.workLimit
            ? kThreads
            : std::clamp<std::size_t>(std::thread::hardware_concurrency(), kThreads, kMostThreads);
    const Progress& progress_;
    double limit_;
    WorkBudget time_{.seconds = limit_};
    bool firstOnly_;  // the first greedy plan that fits, and no more
    StageModel model_;
    RetentionMatrix relaxed_;  // keeps everything
    StageIndex highest_ = 0;
    std::atomic<std::int64_t> bound_ = 0;
    std::atomic<bool> relaxationsDone_ = false, solved_ = false;
    std::atomic<bool> impossible_ = false;
    std::size_t rounds_ = 0;
    Candidates candidates_;
    FirstPlans firstPlans_;
    std::optional<Candidate> segmented_;      // the best plan of segments, if there is one
    std::vector<RetentionMatrix> snapshots_;  // of the last round
    std::vector<RetentionMatrix> imports_;    // of the relaxations: cheap, often too large
};

}  // namespace

Proposal searchWhole(const TrainingGraph& graph, const PlanRequest& request,
                     const Progress& progress) {
    return WholeSearch(graph, request, progress).run();
}

}  // namespace hw::planners

// SPDX-License-Identifier: MIT
#include "planners/highwater.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <mutex>
#include <thread>

#include "planners/annealing.h"
#include "planners/cut_relaxation.h"
#include "planners/lookahead.h"

namespace hw::planners {
namespace {

using namespace hw::core;
using Clock = std::chrono::steady_clock;
using Table = std::vector<std::uint64_t>;

constexpr int kThreads = 2;
constexpr double kCutShare = 0.35;  // of the time, for the relaxations
constexpr std::size_t kMostCuts = 4;
constexpr double kShrink = 0.94;  // budget of one step of the continuation over the one before

/// A table and how good it is: plans within the budget by time, others by what exceeds it.
struct Candidate {
    Table table;
    Nanoseconds time;
    Bytes overflow;

    bool operator<(const Candidate& other) const {
        return overflow != other.overflow ? overflow < other.overflow : time < other.time;
    }
};

/// How far a piece of work has come, by the clock or by its own count.
class Allowance {
public:
    Allowance(double seconds, std::optional<std::int64_t> moves)
        : begin_(Clock::now()), seconds_(seconds), moves_(moves) {}
    double spent(std::int64_t moves) const {
        if (moves_)
            return static_cast<double>(moves) /
                   static_cast<double>(std::max<std::int64_t>(1, *moves_));
        return std::chrono::duration<double>(Clock::now() - begin_).count() /
               std::max(1e-3, seconds_);
    }

private:
    Clock::time_point begin_;
    double seconds_;
    std::optional<std::int64_t> moves_;
};

class Search {
public:
    Search(const TrainingGraph& graph, const PlanRequest& request, const Progress& progress)
        : graph_(graph),
          request_(request),
          progress_(progress),
          begin_(Clock::now()),
          limit_(request.timeLimitSeconds.value_or(10.0)),
          model_(graph) {}

    Proposal run() {
        Proposal proposal;
        if (const Bytes floor = graph_.floorBytes(); request_.budget < floor) {
            proposal.reason =
                "one op with its inputs, outputs, workspace and the constants still "
                "needed takes " +
                humanBytes(floor) + ", whatever is recomputed";
            return proposal;
        }
        StageJudge judge(model_, request_.budget);
        judge.trim();
        relaxed_ = judge.table();
        highest_ = judge.highestStage();
        bound_ = graph_.totalTime();
        if (judge.overflow() == Bytes(0)) {
            offer(judge);
        } else {
            std::jthread cuts([&] { relax(); });
            greedy();
            cuts.join();
            if (!impossible_) improve();
        }
        return conclude();
    }

private:
    bool stopped() const { return progress_.cancelled() || (!request_.workLimit && left() <= 0); }
    double elapsed() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }
    double left() const { return limit_ - elapsed(); }

    void offer(const StageJudge& judge) { offer({judge.table(), judge.time(), judge.overflow()}); }
    void offer(Candidate candidate) {
        const std::lock_guard lock(mutex_);
        pool_.push_back(std::move(candidate));
    }

    void raiseBound(Nanoseconds bound) { bound_ = std::max(bound_, bound); }

    void report(double share) {
        const std::lock_guard lock(mutex_);
        const auto best = std::min_element(pool_.begin(), pool_.end());
        std::string text = "looking for a first plan";
        if (best != pool_.end() && best->overflow == Bytes(0)) {
            const auto percent = [&](Nanoseconds time) {
                return 100 * (ratio(time, graph_.totalTime()) - 1);
            };
            char line[96];
            std::snprintf(line, sizeof line, "best +%.2f %%, proven bound +%.2f %%",
                          percent(best->time), percent(bound_));
            text = line;
        }
        progress_.report(std::min(share, 1.0), text);
    }

    // Step 1.
    void greedy() {
        for (const Distance distance : {Distance::Root, Distance::Full, Distance::None}) {
            if (progress_.cancelled()) return;
            StageJudge judge(model_, request_.budget);
            lookahead(judge, distance, {}, [&] { return stopped(); });
            judge.trim();
            offer(judge);
        }
    }

    // Step 2.
    void relax() {
        if (!haveSolver()) return;
        std::vector<StageIndex> cuts{highest_};
        const double until = limit_ * kCutShare;
        for (; cuts.size() <= kMostCuts && !progress_.cancelled();) {
            CutOptions options;
            if (request_.workLimit)
                options.timeLimitSeconds = 1e6, options.nodeLimit = 200;
            else
                options.timeLimitSeconds = (until - elapsed()) * (cuts.size() == 1 ? 0.7 : 1.0);
            if (options.timeLimitSeconds < 0.02) return;
            const auto solution = solveCuts(model_, request_.budget, cuts, options);
            if (!solution) return;
            if (solution->infeasible) {
                impossible_ = true;
                return;
            }
            raiseBound(solution->bound);
            if (solution->resident.empty()) return;
            StageJudge judge(model_, request_.budget);
            importResidents(judge, cuts, solution->resident);
            imports_.push_back(judge.table());
            offer(judge);
            const StageIndex worst = judge.highestStage();
            const bool fits = judge.overflow() == Bytes(0);
            if (!fits) {
                lookahead(judge, Distance::Root, {}, [&] { return stopped(); });
                judge.trim();
                offer(judge);
            }
            const auto at = std::lower_bound(cuts.begin(), cuts.end(), worst);
            if (fits || (at != cuts.end() && *at == worst)) return;
            cuts.insert(at, worst);
        }
    }

    // Step 3: rounds of annealing, each from the best so far and cooler than the one before. The
    // first one also approaches the budget from above.
    void improve() {
        constexpr std::array kRounds{Cooling{2e-4, 1e-5}, Cooling{8e-5, 3e-6}, Cooling{3e-5, 1e-6}};
        const double seconds = std::max(0.1, left()) / (kRounds.size() + 1);
        round([&](int thread, StageJudge& judge, Annealing& annealing) {
            const bool fits = start_[0].overflow == Bytes(0);
            if (fits && thread == 0)
                anneal(annealing, judge, {5e-4, 2e-5}, seconds, 1.0);
            else
                approach(thread, judge, annealing, seconds);
        });
        for (const Cooling& cooling : kRounds)
            round([&](int thread, StageJudge& judge, Annealing& annealing) {
                judge.load(start_[static_cast<std::size_t>(thread)].table);
                anneal(annealing, judge, cooling, seconds, 1.0);
            });
    }

    // One piece of work on every thread, each with a judge of its own, starting from the best so
    // far: deterministic as long as the pieces are.
    template <class Work>
    void round(Work work) {
        if (stopped()) return;
        std::stable_sort(pool_.begin(), pool_.end());
        start_.clear();
        for (std::size_t t = 0; t < kThreads; ++t)
            start_.push_back(pool_[std::min(t, pool_.size() - 1)]);
        std::vector<std::optional<Candidate>> made(kThreads);
        {
            std::vector<std::jthread> threads;
            for (int t = 0; t < kThreads; ++t)
                threads.emplace_back([&, t] {
                    StageJudge judge(model_, request_.budget);
                    judge.load(start_[static_cast<std::size_t>(t)].table);
                    Annealing annealing(judge, seed(t));
                    work(t, judge, annealing);
                    if (!annealing.best().empty()) {
                        judge.load(annealing.best());
                        judge.trim();
                    }
                    made[static_cast<std::size_t>(t)] = {judge.table(), judge.time(),
                                                         judge.overflow()};
                });
        }
        for (auto& candidate : made) pool_.push_back(std::move(*candidate));
        ++rounds_;
        report(elapsed() / limit_);
    }

    void anneal(Annealing& annealing, StageJudge& judge, const Cooling& cooling, double seconds,
                double share) {
        std::optional<std::int64_t> moves;
        if (request_.workLimit)
            moves = static_cast<std::int64_t>(static_cast<double>(*request_.workLimit) * 1000 *
                                              share / (4 * kThreads));
        const Allowance allowance(seconds * share, moves);
        annealing.forgetUnless(judge.budget() == request_.budget);
        annealing.run(cooling,
                      [&](std::int64_t done) { return stopped() ? 1.0 : allowance.spent(done); });
    }

    // Begins with a plan that is cheap but too large and shrinks the budget step by step.
    void approach(int thread, StageJudge& judge, Annealing& annealing, double seconds) {
        const std::size_t which = imports_.size() > 1 && thread == 0 ? imports_.size() - 1 : 0;
        judge.load(imports_.empty() ? relaxed_ : imports_[which]);
        const double wanted = static_cast<double>(request_.budget.count());
        const double ratioLeft = wanted / static_cast<double>(judge.peak().count());
        const int steps =
            ratioLeft >= 1 ? 0
                           : static_cast<int>(std::ceil(std::log(ratioLeft) / std::log(kShrink)));
        for (int step = steps; step >= 0 && !stopped(); --step) {
            judge.setBudget(Bytes(static_cast<std::int64_t>(wanted / std::pow(kShrink, step))));
            anneal(annealing, judge, {1e-4, 1e-5}, seconds, 1.0 / (steps + 1));
        }
        judge.setBudget(request_.budget);
    }

    std::uint64_t seed(int thread) const {
        return request_.seed * 1000003 + static_cast<std::uint64_t>(rounds_ * kThreads + thread);
    }

    Proposal conclude() {
        Proposal proposal;
        if (haveSolver()) proposal.lowerBound = bound_;
        if (progress_.cancelled()) {
            proposal.status = PlanStatus::Cancelled;
            proposal.reason = "cancelled";
            return proposal;
        }
        if (impossible_) {
            proposal.reason =
                "proven: what must be resident at one stage exceeds the budget, "
                "whatever is recomputed";
            return proposal;
        }
        const auto best = std::min_element(pool_.begin(), pool_.end());
        if (best == pool_.end() || best->overflow > Bytes(0)) {
            proposal.status = PlanStatus::TimeLimit;
            proposal.reason =
                "no plan found in the time given; it is not proven that there is none";
            return proposal;
        }
        StageJudge judge(model_, request_.budget);
        judge.load(best->table);
        proposal.status = PlanStatus::Ok;
        proposal.schedule = judge.schedule();
        return proposal;
    }

    const TrainingGraph& graph_;
    const PlanRequest& request_;
    const Progress& progress_;
    Clock::time_point begin_;
    double limit_;
    StageModel model_;
    Table relaxed_;
    StageIndex highest_ = 0;
    Nanoseconds bound_;
    bool impossible_ = false;
    int rounds_ = 0;
    std::mutex mutex_;
    std::vector<Candidate> pool_;
    std::vector<Candidate> start_;  // of a round, one a thread
    std::vector<Table> imports_;    // what the relaxations would keep: cheap, often too large
};

}  // namespace

Proposal HighwaterPlanner::plan(const TrainingGraph& graph, const PlanRequest& request,
                                const Progress& progress) const {
    return Search(graph, request, progress).run();
}

}  // namespace hw::planners

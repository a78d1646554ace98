// SPDX-License-Identifier: MIT
#include "planners/highwater.h"

#include <algorithm>
#include <array>
#include <atomic>
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
constexpr double kExploring = 2;              // time of the first round over that of another
constexpr std::int64_t kMovesPerItem = 1500;  // of one approach

/// A table and how good it is: plans within the budget by time, others by what exceeds it.
struct Candidate {
    Table table;
    Nanoseconds time;
    Bytes overflow;

    bool operator<(const Candidate& other) const {
        return overflow != other.overflow ? overflow < other.overflow : time < other.time;
    }
};

/// What a piece of work may take: moves, or time until a deadline, or whichever ends first.
struct Allowance {
    std::int64_t moves = INT64_MAX;
    double seconds = INFINITY;
    Clock::time_point begin = Clock::now();

    /// 1 and more when all is spent.
    double spent(std::int64_t done) const {
        return std::max(
            static_cast<double>(done) / static_cast<double>(std::max<std::int64_t>(1, moves)),
            passed() / std::max(1e-3, seconds));
    }
    double passed() const { return std::chrono::duration<double>(Clock::now() - begin).count(); }
};

/// One way of approaching the budget from above.
struct Approach {
    double hot;     // temperature at the beginning
    double shrink;  // budget of a step over that of the one before
};
constexpr std::array kApproaches{Approach{1e-4, 0.94}, Approach{3e-3, 0.7}, Approach{1e-3, 0.94},
                                 Approach{1e-4, 0.7}, Approach{3e-3, 0.85}};

class Search {
public:
    Search(const TrainingGraph& graph, const PlanRequest& request, const Progress& progress)
        : graph_(graph),
          request_(request),
          progress_(progress),
          begin_(Clock::now()),
          limit_(request.timeLimitSeconds.value_or(10.0)),
          firstOnly_(request.options.contains("search") && request.options.at("search") == "first"),
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
        bound_ = graph_.totalTime().count();
        if (judge.overflow() == Bytes(0)) {
            offer(judge);
        } else {
            if (request_.warmStart) {
                judge.load(*request_.warmStart);
                offer(judge);
            }
            if (firstOnly_) {
                greedy();
                return conclude();
            }
            if (request_.workLimit) {  // one after the other: the same result every time
                relax();
                greedy();
                exploreAlone();
            } else {
                std::jthread cuts([&] {
                    relax();
                    relaxationsDone_ = true;
                });
                greedy();
                exploreAlone();
            }
            if (!impossible_) improve();
        }
        return conclude();
    }

private:
    bool stopped() const {
        const bool timed = !request_.workLimit || request_.timeLimitSeconds;
        return progress_.cancelled() || (timed && left() <= 0);
    }
    double elapsed() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }
    double left() const { return limit_ - elapsed(); }

    void offer(const StageJudge& judge) { offer({judge.table(), judge.time(), judge.overflow()}); }
    void offer(Candidate candidate) {
        const std::lock_guard lock(mutex_);
        pool_.push_back(std::move(candidate));
    }

    // Only one thread raises it, the others read it.
    void raiseBound(Nanoseconds bound) { bound_ = std::max(bound_.load(), bound.count()); }
    /// As good as any plan can be, to a millionth of the baseline's time.
    bool proven(Nanoseconds time) const {
        return haveSolver() && time.count() - bound_ <= graph_.totalTime().count() / 1'000'000;
    }

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
                          percent(best->time), percent(Nanoseconds(bound_)));
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
            if (firstOnly_ && judge.overflow() == Bytes(0)) return;
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
        const double seconds = std::max(0.1, left()) / (kRounds.size() + kExploring);
        round([&](int thread, StageJudge& judge, Annealing& annealing) {
            const bool fits = start_[0].overflow == Bytes(0);
            if (fits && thread == 0 && !small())
                anneal(annealing, {5e-4, 2e-5}, allowance(seconds, kExploring));
            else
                explore(thread, judge, annealing, allowance(seconds, kExploring));
        });
        for (const Cooling& cooling : kRounds)
            round([&](int, StageJudge&, Annealing& annealing) {
                anneal(annealing, cooling, allowance(seconds, 1));
            });
    }

    // While the relaxations are solved on the other core.
    void exploreAlone() {
        StageJudge judge(model_, request_.budget);
        Annealing annealing(judge, seed(kThreads));
        explore(kThreads, judge, annealing, allowance(limit_ * kCutShare, 1));
        finish(judge, annealing);
        offer(judge);
    }

    // One piece of work on every thread, each with a judge of its own, starting from the best so
    // far: deterministic as long as the pieces are.
    template <class Work>
    void round(Work work) {
        if (stopped() || solved()) return;
        std::stable_sort(pool_.begin(), pool_.end());
        start_.clear();
        for (std::size_t t = 0; t < kThreads; ++t)
            start_.push_back(pool_[std::min(t, pool_.size() - 1)]);
        std::vector<std::optional<Candidate>> made(kThreads);
        {
            std::vector<std::jthread> threads;
            threads.reserve(kThreads);
            for (int t = 0; t < kThreads; ++t)
                threads.emplace_back([&, t] {
                    StageJudge judge(model_, request_.budget);
                    judge.load(start_[static_cast<std::size_t>(t)].table);
                    Annealing annealing(judge, seed(t));
                    work(t, judge, annealing);
                    finish(judge, annealing);
                    made[static_cast<std::size_t>(t)] = {judge.table(), judge.time(),
                                                         judge.overflow()};
                });
        }
        for (auto& candidate : made) pool_.push_back(std::move(*candidate));
        ++rounds_;
        report(elapsed() / limit_);
    }

    static void finish(StageJudge& judge, const Annealing& annealing) {
        if (!annealing.best().empty()) judge.load(annealing.best());
        judge.trim();
    }

    bool solved() const {
        return std::any_of(pool_.begin(), pool_.end(), [&](const Candidate& candidate) {
            return candidate.overflow == Bytes(0) && proven(candidate.time);
        });
    }

    /// `shares` of the time of a round, or of its part of the work limit.
    Allowance allowance(double seconds, double shares) const {
        Allowance made;
        if (request_.workLimit)
            made.moves = static_cast<std::int64_t>(static_cast<double>(*request_.workLimit) * 1000 *
                                                   shares / (4 + kExploring));
        else
            made.seconds = seconds * shares;
        return made;
    }

    void anneal(Annealing& annealing, const Cooling& cooling, const Allowance& allowance) const {
        annealing.run(cooling, [&](std::int64_t moves) {
            return stopped() || proven(annealing.bestTime()) ? 1.0 : allowance.spent(moves);
        });
    }

    std::int64_t movesOfOneApproach() const {
        return kMovesPerItem * static_cast<std::int64_t>(model_.itemCount() + 1);
    }
    bool small() const { return model_.itemCount() < 600; }

    // Approaches the budget again and again in different ways; leaves the best plan in `judge`.
    void explore(int lane, StageJudge& judge, Annealing& annealing, const Allowance& all) const {
        std::optional<Candidate> best;
        std::int64_t used = 0;
        for (std::size_t run = static_cast<std::size_t>(lane); all.spent(used) < 1 && !stopped();
             run += kThreads) {
            Allowance piece;
            piece.moves = std::min(movesOfOneApproach(), all.moves - used);
            piece.seconds = all.seconds - all.passed();
            used += piece.moves + 1;
            approach(lane, run, judge, annealing, piece);
            finish(judge, annealing);
            Candidate made{judge.table(), judge.time(), judge.overflow()};
            if (!best || made < *best) best = std::move(made);
            if (best->overflow == Bytes(0) && proven(best->time)) break;
            if (lane == kThreads && relaxationsDone_ && !request_.workLimit) break;
        }
        if (best) judge.load(best->table);
    }

    // Begins with a plan that is cheap but too large and shrinks the budget step by step.
    void approach(int lane, std::size_t run, StageJudge& judge, Annealing& annealing,
                  const Allowance& all) const {
        const Approach& way = kApproaches[run % kApproaches.size()];
        if (lane == kThreads || imports_.empty() || run % 3 == 2)
            judge.load(relaxed_);
        else
            judge.load(run % 3 == 0 ? imports_.back() : imports_.front());
        const auto wanted = static_cast<double>(request_.budget.count());
        const double shrink = wanted / static_cast<double>(judge.peak().count());
        const int steps =
            shrink >= 1 ? 0 : static_cast<int>(std::ceil(std::log(shrink) / std::log(way.shrink)));
        const auto part = [&](int parts) {
            Allowance made;
            made.moves = all.moves / parts;
            made.seconds = all.seconds / parts;
            return made;
        };
        for (int step = 0; step <= steps && !stopped(); ++step) {
            judge.setBudget(
                Bytes(static_cast<std::int64_t>(wanted / std::pow(way.shrink, steps - step))));
            annealing.forget();
            anneal(annealing, {way.hot, way.hot / 30}, part(2 * (steps + 1)));
        }
        judge.setBudget(request_.budget);
        anneal(annealing, {way.hot / 3, 1e-6}, part(2));
    }

    std::uint64_t seed(int thread) const {
        return request_.seed * 1000003 + static_cast<std::uint64_t>(rounds_ * kThreads + thread);
    }

    Proposal conclude() {
        Proposal proposal;
        if (haveSolver() && !firstOnly_) proposal.lowerBound = Nanoseconds(bound_);
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
    bool firstOnly_;  // the first greedy plan that fits, and no more
    StageModel model_;
    Table relaxed_;
    StageIndex highest_ = 0;
    std::atomic<std::int64_t> bound_ = 0;
    std::atomic<bool> relaxationsDone_ = false;
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

// SPDX-License-Identifier: MIT
#include "planners/program/checkmate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <random>

#include "core/memory/evaluate.h"
#include "planners/program/checkmate_program.h"
#include "planners/program/cut_relaxation.h"
#include "planners/schedule/lookahead.h"
#include "planners/schedule/work_budget.h"

namespace hw::planners {
namespace {

using namespace hw::core;
using Residents = std::vector<std::vector<bool>>;

constexpr std::size_t kExactColumns = 20'000;   // of the integer program
constexpr std::size_t kRelaxedColumns = 6'000;  // of the first linear relaxation
constexpr std::size_t kMostOps = 20'000;        // merging further leaves nothing of the graph
constexpr std::size_t kFewestGroups = 8;
constexpr double kKeptShare = 0.003;  // of the budget: small items always retained
constexpr double kBoundShare = 0.3;   // of the time
constexpr double kRefinement = 4;     // time of a relaxation of twice the size over the first's
constexpr int kRandomRoundings = 20;

class Attempt {
public:
    Attempt(const TrainingGraph& graph, const PlanRequest& request, const Progress& progress)
        : graph_(graph),
          request_(request),
          progress_(progress),
          limit_(request.timeLimitSeconds.value_or(10.0)),
          time_{.seconds = request.workLimit ? INFINITY : limit_},
          model_(graph) {}

    Proposal run() {
        if (const Bytes floor = graph_.floorBytes(); request_.budget < floor)
            return refuse(PlanStatus::Infeasible,
                          "one op with its inputs, outputs, workspace and the constants still "
                          "needed takes " +
                              humanBytes(floor) + ", whatever is recomputed");
        if (!haveSolver())
            return refuse(PlanStatus::Infeasible,
                          "this build has no solver for integer programs: install HiGHS with "
                          "scripts/setup and configure again");
        StageJudge everything(model_, request_.budget);
        everything.trim();
        if (everything.overflow() == Bytes(0)) {
            bound_ = graph_.totalTime();
            offer(everything);
            return conclude();
        }
        highest_ = everything.highestStage();
        const CheckmateSize full = fullSize(model_);
        if (graph_.ops.size() <= kMostOps) {
            if (small()) {
                boundFromCuts(full);
                if (!impossible_ && !proven()) exact(full);
            } else {
                round();
            }
        }
        return conclude();
    }

    static Proposal tooLarge(const TrainingGraph& graph) {
        return refuse(PlanStatus::Infeasible,
                      "the program is too large: " + std::to_string(graph.ops.size()) +
                          " ops, at most " + std::to_string(kMostOps) + " can be merged");
    }

private:
    bool small() const {
        return static_cast<std::size_t>(model_.end) * model_.end < 16 * kExactColumns &&
               estimatedColumns(model_, fullSize(model_)) <= kExactColumns;
    }
    double left() const { return time_.secondsLeft(); }
    SolveLimits limits(double seconds) const {
        return request_.workLimit ? SolveLimits::deterministic(*request_.workLimit)
                                  : SolveLimits{.seconds = seconds};
    }
    bool stopped() const { return progress_.cancelled() || left() <= 0.01; }
    bool proven() const { return best_ && bound_ && bestTime_ <= *bound_; }

    void offer(const StageJudge& judge) {
        if (judge.overflow() > Bytes(0) || (best_ && judge.time() >= bestTime_)) return;
        best_ = judge.retention();
        bestTime_ = judge.time();
    }
    template <class Fill>
    void tryMatrix(Fill fill) {
        StageJudge judge(model_, request_.budget);
        fill(judge);
        judge.trim();
        offer(judge);
    }

    // Cuts at every stage bound plans of all forms, and sometimes suggest one.
    void boundFromCuts(const CheckmateSize& full) {
        progress_.report(0, "bounding the time of any plan");
        CutOptions options;
        options.limits = limits(left() * kBoundShare);
        options.cancelled = progress_.cancelled;
        const auto solution = solveCuts(model_, request_.budget, full.begin, options);
        if (!solution) return;
        impossible_ = solution->status == SolveStatus::Infeasible;
        if (impossible_) return;
        bound_ = solution->bound;
        if (solution->resident.empty()) return;
        tryMatrix(
            [&](StageJudge& judge) { importResidents(judge, full.begin, solution->resident); });
    }

    CheckmateOptions options(bool integer) const {
        CheckmateOptions made;
        made.limits = limits(std::max(0.05, left()));
        made.integer = integer;
        made.cancelled = progress_.cancelled;
        return made;
    }

    void exact(const CheckmateSize& full) {
        progress_.report(kBoundShare, "solving the integer program");
        CheckmateOptions exact = options(true);
        StageJudge start(model_, request_.budget);
        lookahead(start, Distance::Root, {}, [this] { return stopped(); });
        start.trim();
        offer(start);
        if (best_) {
            start.load(*best_);
            exact.start = &start;
        }
        const auto solution = solveCheckmate(model_, request_.budget, full, exact);
        if (!solution) {
            failed_ = true;
            return;
        }
        noMatrix_ = solution->status == SolveStatus::Infeasible;
        if (solution->retained.empty()) return;
        const Residents rounded = roundRetained(solution->retained, 0.5);
        tryMatrix([&](StageJudge& judge) { importRetained(judge, full, rounded); });
    }

    // Section 5: relaxations, rounded; coarser ones where the full one would be too large, finer
    // ones as long as there is time.
    void round() {
        boundFromOneCut();
        for (std::size_t columns = kRelaxedColumns; !stopped(); columns *= 2) {
            const double before = left();
            const CheckmateSize size = affordableSize(columns);
            roundAt(size);
            const bool full = size.begin.size() == static_cast<std::size_t>(model_.end) + 1;
            if (full || proven() || request_.workLimit || left() < kRefinement * (before - left()))
                return;
        }
    }

    void roundAt(const CheckmateSize& size) {
        constexpr std::array kAllowances{0.1, 0.0, 0.2, 0.3, 0.4};  // the first is the paper's
        for (std::size_t a = 0; a < kAllowances.size() && !stopped(); ++a) {
            if (a >= 2 && best_) break;
            progress_.report(request_.workLimit ? 0 : 1 - left() / limit_,
                             "rounding a linear relaxation");
            const Bytes budget(static_cast<std::int64_t>(
                static_cast<double>(request_.budget.count()) * (1 - kAllowances[a])));
            const auto solution = solveCheckmate(model_, budget, size, options(false));
            if (!solution) failed_ = true;
            if (solution && !solution->retained.empty()) roundings(size, solution->retained);
        }
    }

    // Cheap and valid for all plans, unlike the relaxation of the program.
    void boundFromOneCut() {
        CutOptions options;
        options.limits = limits(left() * kBoundShare);
        options.cancelled = progress_.cancelled;
        options.integer = false;
        const auto solution = solveCuts(model_, request_.budget, {highest_}, options);
        if (!solution) return;
        impossible_ = solution->status == SolveStatus::Infeasible;
        if (!impossible_) bound_ = solution->bound;
    }

    CheckmateSize affordableSize(std::size_t columns) const {
        const auto stages = static_cast<std::size_t>(model_.end) + 1;
        // A group has at least one variable for every op before it, half of them on average.
        std::size_t groups = std::min(stages, 1 + 4 * columns / stages);
        const Bytes kept(
            static_cast<std::int64_t>(kKeptShare * static_cast<double>(request_.budget.count())));
        CheckmateSize size = coarseSize(model_, groups, kept);
        while (groups > kFewestGroups && estimatedColumns(model_, size) > columns) {
            groups = std::max(kFewestGroups, groups * 4 / 5);
            size = coarseSize(model_, groups, kept);
        }
        return size;
    }

    void roundings(const CheckmateSize& size, const std::vector<std::vector<double>>& retained) {
        const auto take = [&](const Residents& rounded) {
            tryMatrix([&](StageJudge& judge) { importRetained(judge, size, rounded); });
            tryMatrix([&](StageJudge& judge) { importResidents(judge, size.begin, rounded); });
        };
        for (const double threshold : {0.5, 0.999, 0.9, 0.75, 0.6, 0.4, 0.25, 0.1, 0.001})
            if (!stopped()) take(roundRetained(retained, threshold));
        std::mt19937_64 random(request_.seed);
        for (int n = 0; n < kRandomRoundings && !stopped(); ++n) {
            Residents drawn = roundRetained(retained, 2);
            for (std::size_t g = 0; g < retained.size(); ++g)
                for (std::size_t i = 0; i < retained[g].size(); ++i)
                    drawn[g][i] = static_cast<double>(random() >> 11) * 0x1p-53 < retained[g][i];
            take(drawn);
        }
    }

    static Proposal refuse(PlanStatus status, std::string reason) {
        Proposal proposal;
        proposal.status = status;
        proposal.reason = std::move(reason);
        return proposal;
    }

    Proposal conclude() const {
        if (progress_.cancelled()) return refuse(PlanStatus::Cancelled, "cancelled");
        Proposal proposal;
        if (best_) {
            StageJudge judge(model_, request_.budget);
            judge.load(*best_);
            proposal.status = PlanStatus::Ok;
            proposal.schedule = judge.schedule();
        } else {
            proposal = noPlan();
        }
        proposal.lowerBound = bound_;
        return proposal;
    }
    Proposal noPlan() const {
        if (graph_.ops.size() > kMostOps) return tooLarge(graph_);
        if (impossible_)
            return refuse(PlanStatus::Infeasible,
                          "proven: what must be resident exceeds the budget, whatever is "
                          "recomputed");
        if (noMatrix_)
            return refuse(PlanStatus::Infeasible,
                          "proven: no plan that recomputes in captured order before each op fits");
        if (failed_) return refuse(PlanStatus::TimeLimit, "the solver failed on this program");
        if (small() || left() <= 0.01)
            return refuse(PlanStatus::TimeLimit, "no plan found in the time given");
        return refuse(PlanStatus::Infeasible,
                      "no rounding of the relaxation fits the budget; it is not proven that no "
                      "plan does");
    }

    const TrainingGraph& graph_;
    const PlanRequest& request_;
    const Progress& progress_;
    double limit_;
    WorkBudget time_;
    StageModel model_;
    std::optional<RetentionMatrix> best_;
    Nanoseconds bestTime_;
    StageIndex highest_ = 0;  // of the plan that drops nothing
    std::optional<Nanoseconds> bound_;
    bool impossible_ = false, noMatrix_ = false, failed_ = false;
};

}  // namespace

PlannerInfo Checkmate::info() {
    return {.name = "checkmate",
            .description = "Checkmate (MLSys 2020), the optimal integer program or its LP rounding",
            .colour = 2,
            .make = [] { return std::make_unique<Checkmate>(); }};
}

Proposal Checkmate::plan(const TrainingGraph& graph, const PlanRequest& request,
                         const Progress& progress) const {
    // Before the model of so many stages is made.
    if (graph.ops.size() > kMostOps &&
        evaluate(graph, baselineSchedule(graph)).peak > request.budget)
        return Attempt::tooLarge(graph);
    return Attempt(graph, request, progress).run();
}

}  // namespace hw::planners

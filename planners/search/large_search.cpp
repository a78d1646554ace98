// SPDX-License-Identifier: MIT
#include "planners/search/large_search.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>
#include <thread>
#include <utility>

#include "core/memory/evaluate.h"
#include "core/memory/lifetimes.h"
#include "planners/chen/chen.h"
#include "planners/dtr/dtr.h"
#include "planners/mimose/mimose.h"
#include "planners/program/knapsack_bound.h"
#include "planners/search/segment_fill.h"
#include "planners/search/shown_gap.h"
#include "planners/search/work_budget.h"

namespace hw::planners {
namespace {

using namespace hw::core;

class LargeSearch {
public:
    LargeSearch(const TrainingGraph& graph, const PlanRequest& request, const Progress& progress)
        : graph_(graph),
          request_(request),
          progress_(progress),
          time_{.seconds = request.timeLimitSeconds.value_or(10.0)},
          firstOnly_(request.options.contains("search") &&
                     request.options.at("search") == "first") {}

    Proposal run() {
        if (request_.warmStart) consider(*request_.warmStart);
        const auto fill = [this] {
            fillSegments(
                graph_, request_.budget,
                [this, last = time_.passed()](Schedule schedule) mutable {
                    Evaluation made = consider(std::move(schedule));
                    slowest_ = std::max(slowest_.load(), time_.passed() - last);
                    last = time_.passed();
                    report();
                    return made;
                },
                [this] { return stopped(); });
        };
        if (request_.workLimit) {
            fill();
            askPlanners();
            prove();
        } else {
            std::jthread others([this] {
                prove();
                askPlanners();
            });
            fill();
        }
        return conclude();
    }

private:
    bool stopped() const {
        const bool timed = !request_.workLimit || request_.timeLimitSeconds;
        return progress_.cancelled() || impossible_ || (timed && time_.secondsLeft() <= slowest_) ||
               (firstOnly_ && found()) || proven();
    }
    /// As good as any plan can be, to the digits shown.
    bool proven() const {
        const std::lock_guard lock(mutex_);
        return !best_.empty() && noGapShown(bestTime_, Nanoseconds(bound_), total_);
    }
    bool found() const {
        const std::lock_guard lock(mutex_);
        return !best_.empty();
    }

    Evaluation consider(Schedule schedule) {
        Evaluation made = evaluate(graph_, schedule);
        const std::lock_guard lock(mutex_);
        if (made.valid && made.peak <= request_.budget && made.time < bestTime_) {
            best_ = std::move(schedule);
            bestTime_ = made.time;
        }
        return made;
    }

    void report() {
        const std::lock_guard lock(mutex_);
        progress_.report(std::clamp(time_.spent(0), 0.0, 1.0),
                         best_.empty() ? "looking for a first plan"
                                       : progressLine(bestTime_, Nanoseconds(bound_), total_));
    }

    void prove() {
        if (firstOnly_) return;
        const StageModel model(graph_);
        const std::vector<Bytes> memory =
            memoryByOp(graph_, lifetimes(graph_, rebuildInfo(graph_))).during;
        auto op =
            static_cast<OpIndex>(std::max_element(memory.begin(), memory.end()) - memory.begin());
        while (model.lazy(op)) ++op;
        const PartsBound proven = boundByKnapsack(model, request_.budget, model.stageOf[op]);
        bound_ = proven.bound.count();
        impossible_ = proven.impossible;
    }

    void askPlanners() {
        ask(Dtr(DtrHeuristic::EqClass));
        ask(ChenGreedy());
        ask(Mimose());
        ask(ChenCheap());
        ask(Dtr(DtrHeuristic::Local));
        if (!found()) ask(ChenRecursive());  // takes the most time, and the least memory
    }

    void ask(const Planner& planner) {
        if (stopped()) return;
        PlanRequest request = request_;
        request.options.clear();
        request.menu = {};
        request.warmStart.reset();
        request.workLimit.reset();
        if (request.timeLimitSeconds) request.timeLimitSeconds = std::max(0.1, time_.secondsLeft());
        Progress inner;
        inner.cancelled = [this] { return stopped(); };
        Proposal proposal = planner.plan(graph_, request, inner);
        if (proposal.status == PlanStatus::Ok) consider(std::move(proposal.schedule));
    }

    Proposal conclude() {
        Proposal proposal;
        if (!firstOnly_) proposal.lowerBound = Nanoseconds(bound_);
        if (progress_.cancelled()) {
            proposal.status = PlanStatus::Cancelled;
            proposal.reason = "cancelled";
        } else if (impossible_) {
            proposal.reason =
                "proven: what must be resident at one stage exceeds the budget, "
                "whatever is recomputed";
        } else if (best_.empty()) {
            proposal.status = PlanStatus::TimeLimit;
            proposal.reason =
                "no plan found in the time given; it is not proven that there is none";
        } else {
            proposal.status = PlanStatus::Ok;
            proposal.schedule = std::move(best_);
        }
        return proposal;
    }

    const TrainingGraph& graph_;
    const PlanRequest& request_;
    const Progress& progress_;
    const WorkBudget time_;
    const bool firstOnly_;  // the first plan that fits, and no more
    mutable std::mutex mutex_;
    Schedule best_;
    Nanoseconds bestTime_{std::numeric_limits<std::int64_t>::max()};
    const Nanoseconds total_ = graph_.totalTime();
    std::atomic<std::int64_t> bound_ = total_.count();
    std::atomic<bool> impossible_ = false;
    std::atomic<double> slowest_ = 0;  // of the segments' candidates, seconds
};

}  // namespace

Proposal searchLarge(const TrainingGraph& graph, const PlanRequest& request,
                     const Progress& progress) {
    return LargeSearch(graph, request, progress).run();
}

}  // namespace hw::planners

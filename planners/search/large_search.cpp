// SPDX-License-Identifier: MIT
#include "planners/search/large_search.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include "core/memory/lifetimes.h"
#include "planners/chen/chen.h"
#include "planners/dtr/dtr.h"
#include "planners/mimose/mimose.h"
#include "planners/program/knapsack_bound.h"
#include "planners/schedule/best_schedule.h"
#include "planners/search/search_request.h"
#include "planners/search/segment_fill.h"
#include "planners/search/shown_gap.h"

namespace hw::planners {
namespace {

using namespace hw::core;

class LargeSearch {
public:
    LargeSearch(const TrainingGraph& graph, const PlanRequest& request, const Progress& progress)
        : graph_(graph),
          request_(request),
          progress_(progress),
          time_(timeOf(request)),
          firstOnly_(firstPlanOnly(request)),
          best_(graph, request.budget) {}

    Proposal run() {
        if (request_.warmStart) best_.consider(*request_.warmStart);
        const auto fill = [this] {
            fillSegments(
                graph_, request_.budget,
                [this, last = time_.passed()](Schedule schedule) mutable {
                    Evaluation made = best_.consider(std::move(schedule));
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
        return progress_.cancelled() || impossible_ ||
               (isTimed(request_) && time_.secondsLeft() <= slowest_) ||
               (firstOnly_ && best_.found()) || proven();
    }
    /// As good as any plan can be, to the digits shown.
    bool proven() const {
        return best_.found() && noGapShown(best_.time(), Nanoseconds(bound_), total_);
    }

    void report() {
        progress_.report(std::clamp(time_.spent(0), 0.0, 1.0),
                         best_.found() ? progressLine(best_.time(), Nanoseconds(bound_), total_)
                                       : "looking for a first plan");
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
        if (!best_.found()) ask(ChenRecursive());  // takes the most time, and the least memory
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
        if (proposal.status == PlanStatus::Ok) best_.consider(std::move(proposal.schedule));
    }

    Proposal conclude() {
        Proposal proposal;
        if (progress_.cancelled())
            proposal = refusal(PlanStatus::Cancelled, "cancelled");
        else if (impossible_)
            proposal = impossible();
        else if (!best_.found())
            proposal = noneInTime();
        else
            proposal.status = PlanStatus::Ok, proposal.schedule = best_.take();
        if (!firstOnly_) proposal.lowerBound = Nanoseconds(bound_);
        return proposal;
    }

    const TrainingGraph& graph_;
    const PlanRequest& request_;
    const Progress& progress_;
    const WorkBudget time_;
    const bool firstOnly_;  // the first plan that fits, and no more
    BestSchedule best_;
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

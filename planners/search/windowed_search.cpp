// SPDX-License-Identifier: MIT
#include "planners/search/windowed_search.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "planners/program/cut_relaxation.h"
#include "planners/search/pass_search.h"
#include "planners/search/search_request.h"
#include "planners/windows/plan_windows.h"

namespace hw::planners {

using namespace hw::core;

namespace {

constexpr std::size_t kManyOps =
    16'000;                           // more are not searched as a whole where windows have plans
constexpr double kWindowShare = 0.6;  // of the time, where they are

class WindowedSearch {
public:
    WindowedSearch(const TrainingGraph& graph, const StepWindows& windows,
                   const PlanRequest& request, const Progress& progress)
        : graph_(graph),
          windows_(windows),
          request_(request),
          progress_(progress),
          time_(timeOf(request)),
          firstOnly_(firstPlanOnly(request)),
          wholeToo_(!firstOnly_ && graph.ops.size() <= kManyOps) {}

    Proposal run() {
        Proposal proposal = planWithBound();
        if (progress_.cancelled()) return proposal;
        const bool found = proposal.status == PlanStatus::Ok;
        if (bound_.impossible) {
            proposal = impossible();
            proposal.lowerBound = bound_.bound;
            return proposal;
        }
        if (found && !wholeToo_) return proposal;
        PlanRequest rest = share(1 - kWindowShare);
        if (found) rest.warmStart = std::move(proposal.schedule);
        Proposal whole = searchPass(graph_, rest, progress_);
        if (whole.lowerBound) whole.lowerBound = std::max(*whole.lowerBound, bound_.bound);
        return whole;
    }

private:
    /// The request for so much of the work, or for what is left of the time.
    PlanRequest share(double of) const {
        PlanRequest part = request_;
        if (request_.workLimit)
            part.workLimit = std::max<std::int64_t>(
                1, static_cast<std::int64_t>(static_cast<double>(*request_.workLimit) * of));
        if (isTimed(request_)) part.timeLimitSeconds = std::max(0.05, time_.secondsLeft());
        return part;
    }

    Proposal planWithBound() {
        std::jthread proving;
        if (haveSolver() && !firstOnly_) proving = std::jthread([this] { prove(); });
        PlanRequest part = share(wholeToo_ ? kWindowShare : 1.0);
        if (part.timeLimitSeconds && wholeToo_) *part.timeLimitSeconds *= kWindowShare;
        Proposal proposal = planWindows(
            windows_, part, progress_,
            [](const WindowClass& of, const PlanRequest& request, const Progress& progress) {
                return searchPass(of.window.graph, request, progress);
            });
        if (proving.joinable()) {
            proving.join();
            proposal.lowerBound = bound_.bound;
        }
        return proposal;
    }

    // One cut in each window, at its highest op.
    void prove() {
        const StageModel model(graph_);
        std::vector<StageIndex> cuts;
        for (OpIndex op : windows_.peaks()) {
            while (model.lazy(op)) ++op;
            cuts.push_back(model.stageOf[op]);
        }
        CutOptions options;
        options.cancelled = progress_.cancelled;
        options.limits = request_.workLimit ? SolveLimits::deterministic(200)
                                            : SolveLimits{.seconds = time_.secondsLeft() * 0.8};
        bound_ = boundByParts(model, request_.budget, cuts, options);
    }

    const TrainingGraph& graph_;
    const StepWindows& windows_;
    const PlanRequest& request_;
    const Progress& progress_;
    WorkBudget time_;
    bool firstOnly_;
    bool wholeToo_;
    PartsBound bound_{graph_.totalTime(), false};
};

}  // namespace

Proposal searchWindows(const TrainingGraph& graph, const StepWindows& windows,
                       const PlanRequest& request, const Progress& progress) {
    return WindowedSearch(graph, windows, request, progress).run();
}

}  // namespace hw::planners

// SPDX-License-Identifier: MIT
#include "planners/fit_arena.h"

#include <algorithm>
#include <chrono>

#include "core/memory/plan_layout.h"

namespace hw::planners {
namespace {

using namespace hw::core;

constexpr int kMostPlans = 8;
constexpr std::int64_t kClose = 1000;  // budgets closer than one part in so many are as good

class ArenaFitter {
public:
    ArenaFitter(std::string_view planner, const TrainingGraph& graph, const PlanRequest& request,
                const PackOptions& packing, const Progress& progress, const Signatures* signatures)
        : planner_(planner),
          graph_(graph),
          request_(request),
          packing_(packing),
          progress_(progress),
          signatures_(signatures) {
        packing_.capacity = request.budget;
        packing_.cancelled = progress.cancelled;
    }

    Result<Outcome> run() {
        Bytes budget = request_.budget;   // of the next plan
        Bytes tooMuch = request_.budget;  // smallest whose plan did not fit the arena
        std::optional<Bytes> enough;      // largest whose plan did
        for (int i = 0; i < kMostPlans && !progress_.cancelled(); ++i) {
            auto outcome = planAt(budget);
            if (!outcome) return outcome.error();
            const bool fits = outcome->status == PlanStatus::Ok && layOutPlan(*outcome);
            if (fits) {
                if (!best_ || outcome->time < best_->time) best_ = std::move(*outcome);
                if (budget == request_.budget) break;
                enough = budget;
            } else {
                if (outcome->status != PlanStatus::Ok && !enough) {
                    last_ = std::move(*outcome);
                    break;
                }
                tooMuch = budget;
            }
            budget = enough ? Bytes((enough->count() + tooMuch.count()) / 2)
                            : budget - Bytes(excess_.count());
            if (budget <= Bytes(0) ||
                (enough && tooMuch - *enough < Bytes(enough->count() / kClose)))
                break;
        }
        return best_ ? *best_ : noneFits();
    }

private:
    Result<Outcome> planAt(Bytes budget) {
        PlanRequest request = request_;
        request.budget = budget;
        return planWith(planner_, graph_, request, progress_);
    }

    // True when the arena keeps the budget; then the plan has its layout.
    bool layOutPlan(Outcome& outcome) {
        const AddressLayout layout = layOut(graph_, outcome.plan->schedule, packing_, signatures_);
        if (!smallest_ || layout.arena < *smallest_) smallest_ = layout.arena;
        if (layout.arena > request_.budget) {
            excess_ = layout.arena - request_.budget;
            return false;
        }
        outcome.budget = outcome.plan->budget = request_.budget;
        outcome.plan->options["fit"] = "arena";
        outcome.plan->layout = layout;
        return true;
    }

    Outcome noneFits() {
        Outcome outcome = last_.value_or(Outcome{});
        outcome.planner = planner_;
        outcome.budget = request_.budget;
        if (progress_.cancelled()) outcome.status = PlanStatus::Cancelled;
        if (smallest_)
            outcome.reason = "the smallest arena of its plans is " + humanBytes(*smallest_) +
                             ", the budget is " + humanBytes(request_.budget);
        return outcome;
    }

    std::string planner_;
    const TrainingGraph& graph_;
    const PlanRequest& request_;
    PackOptions packing_;
    const Progress& progress_;
    const Signatures* signatures_;
    Bytes excess_;
    std::optional<Bytes> smallest_;
    std::optional<Outcome> best_, last_;
};

}  // namespace

Result<Outcome> planWithinArena(std::string_view planner, const TrainingGraph& graph,
                                const PlanRequest& request, const PackOptions& packing,
                                const Progress& progress, const Signatures* signatures) {
    const auto begin = std::chrono::steady_clock::now();
    auto outcome = ArenaFitter(planner, graph, request, packing, progress, signatures).run();
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
    if (outcome) outcome->solveSeconds = elapsed.count();
    return outcome;
}

}  // namespace hw::planners

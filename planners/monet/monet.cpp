// SPDX-License-Identifier: MIT
#include "planners/monet/monet.h"

#include <algorithm>

#include "planners/monet/menu.h"
#include "planners/monet/search.h"
#include "planners/program/cut_relaxation.h"
#include "planners/search/highwater.h"
#include "planners/search/pass_search.h"
#include "planners/search/search_request.h"

namespace hw::planners {
namespace {

using namespace hw::core;

constexpr double kBoundShare = 0.2;  // of the time, for the relaxation
constexpr double kJointShare = 2;    // time of the last search over that of another

class Planning {
public:
    Planning(const TrainingGraph& graph, const PlanRequest& request, const Progress& progress,
             Menu menu)
        : graph_(graph),
          request_(request),
          progress_(progress),
          menu_(std::move(menu)),
          limit_(request.timeLimitSeconds.value_or(10.0)),
          bestCase_(graph, menu_),
          bound_(bestCase_.graph.totalTime()) {}

    Proposal run() {
        Proposal proposal;
        if (const Bytes floor = bestCase_.floor; request_.budget < floor) {
            proposal.reason =
                "one op with its inputs, outputs, workspace and the constants still needed takes " +
                humanBytes(floor) + ", whatever is recomputed and chosen";
            return proposal;
        }
        if (!raiseBound()) {
            proposal.reason =
                "proven: what must be resident at one stage exceeds the budget, whatever is "
                "recomputed and chosen";
            return proposal;
        }
        return conclude(search());
    }

private:
    // False when no plan keeps the budget. Cuts where the best case is highest while it keeps all.
    bool raiseBound() {
        StageJudge judge(bestCase_.model, request_.budget);
        judge.trim();
        if (!haveSolver() || judge.overflow() == Bytes(0)) return true;
        CutOptions options;
        options.limits = request_.workLimit ? SolveLimits::deterministic(200)
                                            : SolveLimits{.seconds = limit_ * kBoundShare};
        options.cancelled = progress_.cancelled;
        const auto solution =
            solveCuts(bestCase_.model, request_.budget, {judge.highestStage()}, options);
        if (!solution) return true;
        if (solution->status == SolveStatus::Infeasible) return false;
        bound_ = std::max(bound_, solution->bound);
        return true;
    }

    /// Kinds that the menu has, one search each.
    std::vector<ImplementationKinds> parts() const {
        std::vector<ImplementationKinds> parts;
        for (const auto kind :
             {ImplementationKind::Algorithm, ImplementationKind::OutputActivated,
              ImplementationKind::IntermediateActivated, ImplementationKind::InPlace})
            if (!onlyKinds(menu_, {kind}).empty()) parts.push_back({kind});
        return parts;
    }

    JointPlan search() {
        const std::vector<ImplementationKinds> alone = parts();
        const std::size_t searches = 1 + alone.size() + (alone.size() > 1 ? 1 : 0);
        unit_ = std::max(0.05, time_.secondsLeft()) /
                (static_cast<double>(searches) + (searches > 1 ? kJointShare - 1 : 0));
        const Menu nothing;
        const JointPlan plain = searchOne(nothing, {}, 0, 1);
        std::vector<JointPlan> found{plain};
        for (const ImplementationKinds& kinds : alone) {
            progress_.report(static_cast<double>(found.size()) / static_cast<double>(searches),
                             "implementations of one kind");
            const Menu menu = onlyKinds(menu_, kinds);
            const std::uint64_t salt = 1 + static_cast<std::uint64_t>(*kinds.begin());
            found.push_back(searchOne(menu, {plain}, salt, alone.size() > 1 ? 1 : kJointShare));
        }
        if (alone.size() > 1) {
            progress_.report(static_cast<double>(found.size()) / static_cast<double>(searches),
                             "implementations of all kinds");
            found.push_back(searchOne(menu_, found, 17, kJointShare));
        }
        return *std::min_element(found.begin(), found.end());
    }

    JointPlan searchOne(const Menu& menu, const std::vector<JointPlan>& warm, std::uint64_t salt,
                        double units) const {
        WorkBudget work;
        if (request_.workLimit)
            work.moves = *request_.workLimit * 1000;
        else
            work.seconds = std::min(unit_ * units, std::max(0.0, time_.secondsLeft()));
        JointSearch search(graph_, menu, request_.budget, request_.seed * 1000003 + salt * 7919,
                           progress_.cancelled);
        // As good as any plan can be, to a millionth of the baseline's time.
        const Nanoseconds enough = bound_ + Nanoseconds(graph_.totalTime().count() / 1'000'000);
        return search.run(warm, work, enough);
    }

    Proposal conclude(const JointPlan& best) const {
        Proposal proposal;
        proposal.lowerBound = bound_;
        if (progress_.cancelled()) {
            proposal.status = PlanStatus::Cancelled;
            proposal.reason = "cancelled";
            return proposal;
        }
        if (!best.fits()) {
            Proposal none = noneInTime();
            none.lowerBound = bound_;
            return none;
        }
        StageJudge judge(best.implemented->model, request_.budget);
        judge.load(best.retention);
        proposal.status = PlanStatus::Ok;
        proposal.schedule = judge.schedule();
        proposal.implementations = best.choice;
        return proposal;
    }

    const TrainingGraph& graph_;
    const PlanRequest& request_;
    const Progress& progress_;
    Menu menu_;
    double limit_;
    WorkBudget time_{.seconds = limit_};
    double unit_ = 0;  // seconds of one search
    BestCase bestCase_;
    Nanoseconds bound_;
};

}  // namespace

PlannerInfo Monet::info() {
    return {.name = "monet",
            .description =
                "MONeT (ICLR 2021): recomputation and implementations of ops, chosen jointly",
            .colour = 6,
            .takesMenu = true,
            .make = [] { return std::make_unique<Monet>(); }};
}

Proposal Monet::plan(const TrainingGraph& graph, const PlanRequest& request,
                     const Progress& progress) const {
    Proposal refused;
    const auto use = request.options.find("use");
    const auto kinds = parseKinds(use == request.options.end() ? "" : use->second);
    if (!kinds) {
        refused.reason = kinds.error().what;
        return refused;
    }
    if (request.menu.empty()) return HighwaterPlanner().plan(graph, request, progress);
    if (isLarge(graph)) {  // nothing is chosen then, and the bound is one without choices
        Proposal plain = HighwaterPlanner().plan(graph, request, progress);
        plain.lowerBound.reset();
        return plain;
    }
    return Planning(graph, request, progress, onlyKinds(request.menu, *kinds)).run();
}

}  // namespace hw::planners

// SPDX-License-Identifier: MIT
// What a request means to a search, and how one ends without a plan.
#pragma once

#include "planners/planner.h"
#include "planners/schedule/work_budget.h"

namespace hw::planners {

/// The first plan that fits, and no more: no bound either.
inline bool firstPlanOnly(const PlanRequest& request) {
    const auto search = request.options.find("search");
    return search != request.options.end() && search->second == "first";
}

/// Of no consequence where a work limit alone ends the search.
inline bool isTimed(const PlanRequest& request) {
    return !request.workLimit || request.timeLimitSeconds;
}

/// From now.
inline WorkBudget timeOf(const PlanRequest& request) {
    return {.seconds = request.timeLimitSeconds.value_or(10.0)};
}

inline Proposal refusal(PlanStatus status, std::string reason) {
    Proposal refused;
    refused.status = status;
    refused.reason = std::move(reason);
    return refused;
}
inline Proposal impossible() {
    return refusal(PlanStatus::Infeasible,
                   "proven: what must be resident at one stage exceeds the budget, whatever is "
                   "recomputed");
}
inline Proposal noneInTime() {
    return refusal(PlanStatus::TimeLimit,
                   "no plan found in the time given; it is not proven that there is none");
}

}  // namespace hw::planners

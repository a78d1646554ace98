// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "planners/planner.h"
#include "planners/schedule/best_schedule.h"

namespace hw::planners::chen {

/// Judges candidates and remembers the fastest one within the budget.
class Search {
public:
    Search(const core::TrainingGraph& graph, core::Bytes budget)
        : graph_(graph), best_(graph, budget) {}

    /// Its time where it keeps the budget.
    std::optional<core::Nanoseconds> consider(core::Schedule schedule) {
        const core::Evaluation result = best_.consider(std::move(schedule));
        if (result.valid) lowest_ = std::min(lowest_, result.peak);
        return best_.fits(result) ? std::optional(result.time) : std::nullopt;
    }
    bool found() const { return best_.found(); }
    /// Nothing recomputed: no other candidate can be faster.
    bool free() const { return best_.time() <= graph_.totalTime(); }
    /// The plan, or the reason why there is none: `least` says what all candidates have in common.
    Proposal proposal(const std::string& least) {
        Proposal made;
        made.status = found() ? PlanStatus::Ok : PlanStatus::Infeasible;
        if (!found()) made.reason = least + " need at least " + core::humanBytes(lowest_);
        made.schedule = best_.take();
        return made;
    }

private:
    const core::TrainingGraph& graph_;
    core::Bytes lowest_{std::numeric_limits<std::int64_t>::max()};
    BestSchedule best_;
};

inline Proposal cancelledProposal() {
    return {PlanStatus::Cancelled, "cancelled", {}, {}, {}};
}

}  // namespace hw::planners::chen

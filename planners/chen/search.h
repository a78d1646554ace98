// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "planners/planner.h"

namespace hw::planners::chen {

/// Judges candidates and remembers the fastest one within the budget.
class Search {
public:
    Search(const core::TrainingGraph& graph, core::Bytes budget) : graph_(graph), budget_(budget) {}

    /// Its time where it keeps the budget.
    std::optional<core::Nanoseconds> consider(core::Schedule schedule) {
        const core::Evaluation result = core::evaluate(graph_, schedule);
        if (!result.valid) return std::nullopt;
        lowest_ = std::min(lowest_, result.peak);
        if (result.peak > budget_) return std::nullopt;
        if (found_ && result.time >= time_) return result.time;
        found_ = true;
        time_ = result.time;
        best_ = std::move(schedule);
        return time_;
    }
    bool found() const { return found_; }
    /// Nothing recomputed: no other candidate can be faster.
    bool free() const { return found_ && time_ <= graph_.totalTime(); }
    /// The plan, or the reason why there is none: `least` says what all candidates have in common.
    Proposal proposal(const std::string& least) {
        Proposal made;
        made.status = found_ ? PlanStatus::Ok : PlanStatus::Infeasible;
        if (!found_) made.reason = least + " need at least " + core::humanBytes(lowest_);
        made.schedule = std::move(best_);
        return made;
    }

private:
    const core::TrainingGraph& graph_;
    core::Bytes budget_;
    core::Bytes lowest_{std::numeric_limits<std::int64_t>::max()};
    core::Nanoseconds time_;
    bool found_ = false;
    core::Schedule best_;
};

inline Proposal cancelledProposal() {
    return {PlanStatus::Cancelled, "cancelled", {}, {}, {}};
}

}  // namespace hw::planners::chen

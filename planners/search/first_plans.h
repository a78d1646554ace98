// SPDX-License-Identifier: MIT
// Plans in milliseconds to begin with: greedy ones, and those of the literature.
#pragma once

#include <functional>
#include <optional>

#include "planners/planner.h"
#include "planners/schedule/lookahead.h"
#include "planners/search/candidates.h"

namespace hw::planners {

/// Graphs with fewer items have many valleys and little work a move; larger ones need long walks.
inline bool isSmall(const core::StageModel& model) {
    return model.itemCount() < 600;
}

class FirstPlans {
public:
    /// @param stopped cancelled or out of time
    /// @param left seconds until the search ends
    FirstPlans(const core::StageModel& model, const PlanRequest& request, const Progress& progress,
               std::function<bool()> stopped, std::function<double()> left, Candidates& candidates)
        : model_(model),
          request_(request),
          progress_(progress),
          stopped_(std::move(stopped)),
          left_(std::move(left)),
          candidates_(candidates) {}

    /// Offers walks with the future known (lookahead.h), Chen's segments, and of the others of the
    /// literature those that take no time, or all while nothing fits.
    /// @param one true: no more than the first that fits
    void offerAll(bool one);
    /// Offers the best plan of segments of the cheapest results (segment_fill.h). @return it; none
    /// where none fits
    std::optional<Candidate> offerFilled();
    /// Walks from what `judge` holds and offers where that ends. A walk that thrashes is left.
    void walk(core::StageJudge& judge, Distance distance);

private:
    bool offer(Distance distance);
    bool offer(const Planner& planner);

    const core::StageModel& model_;
    const PlanRequest& request_;
    const Progress& progress_;
    std::function<bool()> stopped_;
    std::function<double()> left_;
    Candidates& candidates_;
};

}  // namespace hw::planners

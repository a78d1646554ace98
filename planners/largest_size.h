// SPDX-License-Identifier: MIT
// How large a step can be within a budget, for each planner.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/family/family.h"
#include "planners/plan_with.h"

namespace hw::planners {

/// Items of size `size` a second, where a step takes `time`; 0 where it takes none.
double itemsPerSecond(std::int64_t size, core::Nanoseconds time);

/// A size at which a plan within the budget was found.
struct TriedSize {
    std::int64_t size = 0;
    core::Bytes peak;
    core::Nanoseconds time;
    bool timed = true;  // the records tell times of that size (Family::tellsTimes)
};

/// The largest size at which a planner found a plan within the budget.
struct LargestSize {
    std::string planner;
    std::optional<std::int64_t> size;  // none: it found none at any size
    std::optional<Outcome> outcome;    // its plan at that size; without one, what it said at last
    bool timed = true;                 // the records tell times of that size
    bool timedOut = false;             // more time might have found a larger one
    /// The size with the most items a second of those that were tried and fit: not always the
    /// largest, as recomputation takes time.
    std::optional<std::int64_t> fastest;  // none: no time of those sizes can be told
    double itemsPerSecond = 0;            // there
    /// By ascending size, each once, of several plans the fastest.
    std::vector<TriedSize> tried;
};

/// What the planners reach, in their order.
struct LargestSizes {
    std::vector<LargestSize> rows;
    /// At larger sizes another kind of step than the usual one has no plan; none: there is no such
    /// kind, or none that ends before the planners do.
    std::optional<std::int64_t> mostOfOthers;
};

/// The largest size for each of `planners` at which the usual step has a plan of that planner, and
/// each other kind one of quickPlanner(): the first step of a training must not fail where the
/// others would fit. Sizes are searched by bisection; as planners are not monotonic, a few above
/// the end are tried, too. Highwater's own planner begins with the plans of the others: its size is
/// never below theirs.
/// @param request the budget; its time limit is what each planner may take for all of its tries
///        (default 10 seconds)
/// Errors: as planWith().
core::Result<LargestSizes> largestSizes(const core::StepFamilies& families,
                                        const std::vector<std::string>& planners,
                                        const PlanRequest& request, const Progress& progress = {});

}  // namespace hw::planners

// SPDX-License-Identifier: MIT
// Where a live run did not come to what its plan or budget says: how many steps, how far, and why.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/units.h"
#include "live/host/live_run.h"
#include "live/host/plans.h"

namespace hw::live {

/// What binds the live bytes of a process; none: nothing does.
std::optional<core::Bytes> budgetOf(const LivePlan* plan, const std::optional<core::Bytes>& limit);

/// The plan of that rank; null: it has none.
const LivePlan* planOf(const std::vector<LivePlan>& plans, std::int64_t rank);

struct Shortfall {
    std::int64_t stepsAbove = 0;  // of the budget, by more than what no recording counts
    core::Bytes most;             // of these: how far above it
    /// A sentence each, with what to do where something can be done. Empty where the run was as it
    /// was to be.
    std::vector<std::string> why;
};

Shortfall shortfallOf(const LiveProcess& process, const LivePlan* plan,
                      const std::optional<core::Bytes>& limit, const LiveSummary& summary);

/// Tells once of each process, while it runs, that a step was above the budget, or that none is
/// under the plan.
class ShortfallTeller {
public:
    /// `plans` outlive it.
    ShortfallTeller(const std::vector<LivePlan>& plans, std::optional<core::Bytes> limit,
                    profiler::Progress note)
        : plans_(plans), limit_(limit), note_(std::move(note)) {}

    void step(const LiveStep& step);

private:
    struct Rank {
        std::int64_t unplanned = 0;  // steps, before any planned one
        bool planned = false;        // a step was
        bool told = false;
    };

    const std::vector<LivePlan>& plans_;
    std::optional<core::Bytes> limit_;
    profiler::Progress note_;
    std::map<std::int64_t, Rank> ranks_;
};

}  // namespace hw::live

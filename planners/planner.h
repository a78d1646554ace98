// SPDX-License-Identifier: MIT
// The interface that every planner implements, and the registry.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/graph/training_graph.h"
#include "core/memory/evaluate.h"
#include "core/plan/plan.h"

namespace hw::planners {

struct PlanRequest {
    core::Bytes budget;  // binds the peak, constants included
    std::optional<double> timeLimitSeconds;
    std::optional<std::int64_t> workLimit;  // planner's own units of work; deterministic
    std::uint64_t seed = 0;
    double thrashLimit = 2.0;  // DTR: stop above baseline time x this
    std::map<std::string, std::string> options;
    std::optional<core::Schedule> warmStart;  // a plan of the same graph to begin with
};

/// Called from the planning thread. `cancelled` is asked often; `report` gets fractions in 0..1.
struct Progress {
    std::function<bool()> cancelled = [] { return false; };
    std::function<void(double fraction, std::string_view what)> report = [](double,
                                                                            std::string_view) {};
};

enum class PlanStatus { Ok, Infeasible, Thrash, TimeLimit, Cancelled };
std::string_view planStatusName(PlanStatus status);  // "ok", "infeasible", "thrash", …

/// What a planner answers: a schedule, or the reason why there is none. Figures come from the
/// judge.
struct Proposal {
    PlanStatus status = PlanStatus::Infeasible;
    std::string reason;  // when there is no schedule
    core::Schedule schedule;
    std::optional<core::Nanoseconds> lowerBound;
    std::map<std::string, std::int64_t>
        figures;  // of a simulated runtime: clock, evals, accesses, peak
    /// Of the option `menu`: the schedule is one of the graph under this choice.
    std::map<core::OpIndex, std::string> implementations = {};
};

class Planner {
public:
    virtual ~Planner() = default;
    virtual Proposal plan(const core::TrainingGraph& graph, const PlanRequest& request,
                          const Progress& progress) const = 0;
};

struct PlannerInfo {
    std::string name;                  // on the command line
    std::string description;           // one line, with the source
    std::vector<std::string> options;  // of PlanRequest: "encodings=on|off", the default first
};
std::vector<PlannerInfo> plannerList();
/// Usage error naming the planner's options and their values when one of `options` is none of
/// them. Options are checked where people give them; planners ignore those of others.
core::Status checkOptions(std::string_view planner,
                          const std::map<std::string, std::string>& options);
/// Usage error naming the known planners when there is none of that name.
core::Result<std::unique_ptr<Planner>> makePlanner(std::string_view name);

/// A proposal under the judge: what `plan`, `sweep` and the window show.
struct Outcome {
    std::string planner;
    PlanStatus status = PlanStatus::Infeasible;
    std::string reason;
    core::Bytes budget;
    core::Bytes peak;  // judge's; the runtime's own figure when there is no schedule
    core::Nanoseconds time;
    double overhead = 0;  // time / baseline time
    std::int64_t recomputedOps = 0;
    std::optional<core::Nanoseconds> lowerBound;
    std::optional<double> gap;   // (time - lower bound) / baseline time
    double solveSeconds = 0;     // wall time of planning
    double solveCpuSeconds = 0;  // processor time of the calling thread in it
    std::map<std::string, std::int64_t> figures;
    std::optional<core::Plan> plan;  // when status is Ok
};

/// Runs the planner, judges its schedule and fills the plan. A schedule that breaks the budget or
/// that the judge refuses never comes back as Ok. A plan that chose implementations is judged on
/// the graph under its choice, its overhead is over the captured baseline, and its option `menu`
/// holds what it chose. Errors: Usage for an unknown planner, BadInput for a malformed menu.
core::Result<Outcome> planWith(std::string_view planner, const core::TrainingGraph& graph,
                               const PlanRequest& request, const Progress& progress = {});

/// Smallest budget at which `planner` finds a plan, searched by bisection between the graph's floor
/// and its baseline peak within half of the request's time limit; none when even the baseline peak
/// has no plan.
std::optional<core::Bytes> smallestBudget(std::string_view planner,
                                          const core::TrainingGraph& graph, PlanRequest request,
                                          const Progress& progress = {});

}  // namespace hw::planners

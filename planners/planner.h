// SPDX-License-Identifier: MIT
// The interface that every planner implements, and what is known of one without running it.
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
#include "core/plan/menu.h"
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
    core::Menu menu;                          // implementations of the graph's ops to choose from
    /// Most bytes of copies in host memory; none: nothing is offloaded. A copy takes what the
    /// graph's link takes.
    std::optional<core::Bytes> hostMemory;
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
    /// From the request's menu: the schedule is one of the graph under this choice.
    core::ImplementationChoice implementations = {};
};

class Planner {
public:
    virtual ~Planner() = default;
    virtual Proposal plan(const core::TrainingGraph& graph, const PlanRequest& request,
                          const Progress& progress) const = 0;
};

/// Planners that belong together, which views draw alike.
enum class PlannerFamily : std::uint8_t { Single, Chen, Dtr, Own };

/// The entry of a planner in the registry. Traits that a planner does not state do not hold.
struct PlannerInfo {
    std::string name = {};         // on the command line; "family:variant" among many variants
    std::string description = {};  // one line, with the source
    std::vector<std::string> options = {};  // "encodings=on|off", the default first
    PlannerFamily family = PlannerFamily::Single;
    int colour = 7;                 // of a palette of eight, apart from others of the family
    bool baseline = false;          // the recorded order itself: what others are compared with
    bool quick = false;             // milliseconds even for thousands of ops
    bool budgetFree = false;        // one plan per graph, whatever the budget
    bool provesInfeasible = false;  // its Infeasible means that no plan keeps the budget
    bool warmStarts = false;        // begins with PlanRequest::warmStart
    bool takesMenu = false;         // chooses from PlanRequest::menu
    bool offloads = false;          // uses PlanRequest::hostMemory
    bool needsHostMemory = false;   // plans nothing without it
    bool plansSizes = false;        // plans every input size of a session at once too
    bool preselected = false;       // shown before anything is chosen
    std::function<std::unique_ptr<Planner>()> make = {};

    bool takesOption(std::string_view option) const;
};

}  // namespace hw::planners

// SPDX-License-Identifier: MIT
// Which steps of a program within a budget are traced, and what of it planners get: each kind of
// step once it has come by whole, where there are several of them (as with input sizes that vary),
// and with the times of several steps where it comes often.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "step_trace.h"

namespace hw::live::runtime {

/// What a planner is to look at.
struct PlanRequest {
    std::int64_t kind = 0;  // of step
    bool often = false;     // worth a longer search; else one of several kinds, to be planned soon
    std::string trace;      // see StepTrace::json()
};

class StepKinds {
public:
    /// Whether the step that begins is to be traced.
    bool wanted();
    /// A step has been traced.
    void add(std::unique_ptr<StepTrace> step);
    /// A step of that kind has kept to its plan.
    void planned(std::int64_t kind);
    /// The next one, if there is one.
    std::optional<PlanRequest> take();
    /// Of an op, by what was traced of steps that have it at that place; see Place.
    std::int64_t layerOf(std::int64_t op, const std::string& name) const;

private:
    struct Kind {
        std::int64_t number = 0;
        std::unique_ptr<StepTrace> trace;
        std::int64_t steps = 0;            // of this kind, traced or planned
        std::int64_t last = 0;             // of them
        bool soon = false, often = false;  // a planner has been asked
    };

    void ask(Kind& kind);

    std::vector<Kind> kinds_;
    std::deque<PlanRequest> requests_;
    std::int64_t steps_ = 0, traced_ = 0, planned_ = 0;
    std::int64_t numbers_ = 0;            // of kinds
    std::int64_t pause_ = 0, until_ = 1;  // steps between traces; the first one is like no other
};

}  // namespace hw::live::runtime

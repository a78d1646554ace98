// SPDX-License-Identifier: MIT
// Plans whose packed arena, not only whose live peak, keeps the budget.
#pragma once

#include "core/memory/layout.h"
#include "core/memory/signature.h"
#include "planners/plan_with.h"

namespace hw::planners {

/// As planWith(), but `request.budget` binds the arena (rule 9), and the plan comes with its
/// address layout. A heuristic: planners know nothing of addresses, so a plan whose arena is too
/// large is made again with a budget lowered by the excess; once one fits, a few budgets between it
/// and the last one that did not are tried, and the fastest plan that fits is kept. Eight plans at
/// most. That none fits does not prove that there is none: the status is Infeasible, or what the
/// planner answered, and `reason` tells the smallest arena met. `solveSeconds` covers all plans and
/// packings. With `signatures` (one an op) the layout is that of the allocations that a run makes.
core::Result<Outcome> planWithinArena(std::string_view planner, const core::TrainingGraph& graph,
                                      const PlanRequest& request, const core::PackOptions& packing,
                                      const Progress& progress = {},
                                      const core::Signatures* signatures = nullptr);

}  // namespace hw::planners

// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "core/graph/training_graph.h"
#include "core/plan/plan.h"

namespace hw::core {

/// What a plan holds between forward and backward. By op: `saves`, forward ops whose results the
/// plan holds; `recomputed`, ops that run again. By storage: `retained`, held by the plan;
/// `wanted`, made in forward and read in backward by the captured order.
struct HeldByPlan {
    std::vector<bool> saves, recomputed, retained, wanted;
};
/// `schedule` must be valid for `graph`.
HeldByPlan heldByPlan(const TrainingGraph& graph, const Schedule& schedule);

/// The last op of the forward pass; kNone when no phase is known.
OpIndex lastForwardOp(const TrainingGraph& graph);

}  // namespace hw::core

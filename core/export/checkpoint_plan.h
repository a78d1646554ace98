// SPDX-License-Identifier: MIT
// A plan in the words of PyTorch: which layers to checkpoint, and which of their results to keep.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/graph/training_graph.h"
#include "core/plan/plan.h"

namespace hw::core {

/// What a plan does to the forward ops of one layer and of the layers below it.
struct LayerPlan {
    LayerIndex layer = kNone;
    std::int64_t forwardOps = 0, recomputedOps = 0;  // recomputed: ops that run again
    Nanoseconds recomputeTime;
    Bytes retained, dropped;  // activations between forward and backward: held, and given up
};

/// One entry a layer, in the order of `graph.layers`.
std::vector<LayerPlan> layerPlans(const TrainingGraph& graph, const Schedule& schedule);

/// The layers to wrap in a checkpoint: together they hold all recomputed forward ops that any layer
/// below the root holds, none lies within another, and each is as small as it can be without
/// holding less than a tenth of what the plan drops.
std::vector<LayerIndex> checkpointRegions(const TrainingGraph& graph,
                                          const std::vector<LayerPlan>& layers);

/// CSV: layer,type,forward_ops,recomputed_ops,recompute_ns,retained_bytes,dropped_bytes,checkpoint.
std::string layerListCsv(const TrainingGraph& graph, const Plan& plan);

/// A Python module for torch 2.5 and later: `apply(model)` wraps the regions in
/// torch.utils.checkpoint with a selective policy, by op name and call number within the region.
/// An op is saved where the plan holds its result until backward. Errors: BadInput when the plan
/// recomputes nothing that a checkpoint of layers could.
Result<std::string> torchPolicy(const TrainingGraph& graph, const Plan& plan);

}  // namespace hw::core

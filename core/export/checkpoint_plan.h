// SPDX-License-Identifier: MIT
// A plan in the words of PyTorch: which layers to checkpoint, and which of their results to keep.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/graph/training_graph.h"
#include "core/plan/checkpoints.h"
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

/// CSV: layer,type,forward_ops,recomputed_ops,recompute_ns,retained_bytes,dropped_bytes,checkpoint
/// (1: `chosen` wraps it).
std::string layerListCsv(const TrainingGraph& graph, const Plan& plan,
                         const std::optional<CheckpointChoice>& chosen);

struct TorchPolicy {
    std::string text;
    Bytes peak;        // expected with the policy, by the judge
    Nanoseconds time;  // of the step, likewise
    Bytes baselinePeak;
    Nanoseconds baselineTime;
};

/// A Python module for torch 2.5 and later: `apply(model)` wraps the chosen regions in
/// torch.utils.checkpoint with a selective policy, by op name and call number within the region.
/// Errors: BadInput when nothing was chosen: no checkpoint of a layer would lower the peak.
Result<TorchPolicy> torchPolicy(const TrainingGraph& graph, const Plan& plan,
                                const std::optional<CheckpointChoice>& chosen);

}  // namespace hw::core

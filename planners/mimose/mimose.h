// SPDX-License-Identifier: MIT
#pragma once

#include <optional>

#include "core/base/result.h"
#include "planners/mimose/estimator.h"
#include "planners/mimose/scheduler.h"
#include "planners/planner.h"

namespace hw::planners {

/// Liao et al., "Mimose: An Input-Aware Checkpointing Planner for Efficient Training on GPU"
/// (2022), on one captured step: whole layers are checkpointed, chosen by Algorithm 1
/// (mimose_scheduler.h) from what they save (mimose_layers.h).
///
/// Departures: the paper subtracts what the dropped layers save from the estimated peak; here the
/// judge replays the schedule, and more is dropped until the budget is kept or nothing is left.
/// Plans for input sizes that were never recorded come from InputAwarePlanner.
class Mimose : public Planner {
public:
    static PlannerInfo info();
    Proposal plan(const core::TrainingGraph& graph, const PlanRequest& request,
                  const Progress& progress) const override;
};

/// Plans by input size, from a few recorded steps of different sizes: the paper's system without
/// its training loop. Choosing the layers for a size takes microseconds; building the schedule of
/// ops for a captured step is apart.
class InputAwarePlanner {
public:
    /// `budget` binds the peak, constants included. Sizes up to `tolerance` below that of a plan
    /// share it.
    InputAwarePlanner(MimoseEstimator estimator, core::Bytes budget, double tolerance = 0.05);

    /// Layers to drop, as indices into estimator().layers(); none when no choice fits the
    /// estimate. A plan leaves the room of the estimator's residual.
    std::optional<LayerChoice> choose(double size);

    const MimoseEstimator& estimator() const { return estimator_; }
    const PlanCache& cache() const { return cache_; }

private:
    MimoseEstimator estimator_;
    core::Bytes budget_;
    PlanCache cache_;
};

/// The schedule of a captured step that drops these of mimoseLayers(graph), by index; the baseline
/// where it drops none.
core::Schedule dropLayers(const core::TrainingGraph& graph, const LayerChoice& choice);

}  // namespace hw::planners

// SPDX-License-Identifier: MIT
#pragma once

#include "planners/planner.h"

namespace hw::planners {

/// Zheng, Vijaykumar, Pekhimenko, "Echo: Compiler-based GPU Memory Footprint Reduction for LSTM RNN
/// Training" (ISCA 2020): feature maps behind cheap ops are recomputed when the backward pass needs
/// them (Algorithm 1, echo_analysis.h), each recomputation in the buffers of the one before, and
/// dropout masks and the signs behind a ReLU are kept as one bit an element (echo_codecs.h). Masks
/// are kept or drawn again, all of them, whichever gives the lower peak.
///
/// Budget-free, as in the paper: the plan is the one of the lowest peak, and the budget is judged
/// afterwards. Never worse than the baseline: where recomputation does not lower the judge's peak,
/// the answer is the baseline.
///
/// Departures: the paper estimates the footprint of each subgraph, here the judge replays the whole
/// schedule for a few bounds on the size of one recomputation (EchoAnalysis::split) and the lowest
/// peak wins. Random ops are run again like others, since the executor replays their generators.
/// Plans for the simulator's logs contain no encodings, nor do those with the option
/// `encodings` = `off`.
class Echo : public Planner {
public:
    static PlannerInfo info();
    Proposal plan(const core::TrainingGraph& graph, const PlanRequest& request,
                  const Progress& progress) const override;
};

}  // namespace hw::planners

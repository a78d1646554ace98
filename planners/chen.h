// SPDX-License-Identifier: MIT
#pragma once

#include "planners/planner.h"

namespace hw::planners {

/// Chen et al., "Training Deep Nets with Sublinear Memory Cost" (2016), Algorithm 3 with the budget
/// search of Appendix A: the forward pass is cut into segments whenever the bytes made since the
/// last cut exceed B; only what crosses a cut is kept, the rest is recomputed segment by segment
/// when the backward pass needs it. B is searched on a grid between the smallest and the largest
/// segment, the fastest plan within the budget wins.
///
/// Departures: the paper cuts chains at single values; here, on general graphs, a cut keeps every
/// storage that later forward ops read, and cuts are made where that is locally smallest. Within a
/// segment only what the backward pass really needs is recomputed. A storage whose rebuild would
/// become impossible (rule 7) is never dropped.
class ChenGreedy : public Planner {
public:
    Proposal plan(const core::TrainingGraph& graph, const PlanRequest& request,
                  const Progress& progress) const override;
};

}  // namespace hw::planners

// SPDX-License-Identifier: MIT
#pragma once

#include "planners/planner.h"

namespace hw::planners {

/// The rule of Peng et al., "Capuchin: Tensor-based GPU Memory Management for Deep Learning"
/// (ASPLOS 2020), section 4.3 to 4.5, as a reference. Of what is idle over the peak, that with the
/// longest free time (from the end of its copy out to the begin of its copy in) is swapped first,
/// while that is not negative. The rest of the need goes, one after the other, to what costs least
/// for its bytes: swapping all the same, at the time that the copies are late, or recomputation, at
/// the time of the ops that lead there from what is kept.
///
/// Departures. The paper measures in steps that run; here both are of the recorded step, and a
/// copy's place follows from the clocks (offload_schedule.h) instead of being moved from step to
/// step. Constants stay. Where the rule has not freed enough, because what is made again stands
/// beside what is there, more is swapped.
class Capuchin : public Planner {
public:
    static PlannerInfo info();
    Proposal plan(const core::TrainingGraph& graph, const PlanRequest& request,
                  const Progress& progress) const override;
};

}  // namespace hw::planners

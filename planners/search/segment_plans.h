// SPDX-License-Identifier: MIT
// Plans to begin with for long steps: checkpoints between segments, and within each segment what
// is worth its bytes.
#pragma once

#include <functional>
#include <optional>

#include "planners/search/candidates.h"

namespace hw::planners {

/// Cuts what comes before stage `cut`, where memory is highest, into segments where little crosses
/// (Chen et al. 2016), for several lengths of the segments. What crosses stays; of the
/// rest, the linear relaxation of the cut program (program/cut_relaxation.h) says what to keep
/// across `cut`. As nothing is rebuilt from beyond its segment, the plan needs little more than the
/// program sees; it is solved again with fewer bytes until the plan fits. One relaxation by itself
/// may keep single storages far apart, so that one rebuild makes all between them.
///
/// Offers the plans that fit. The same result each time, but for `stop`, which it asks between two
/// solves.
/// @return the best plan, whether it fits or not; none where there are no segments to make
std::optional<Candidate> segmentPlans(const core::StageModel& model, core::Bytes budget,
                                      core::StageIndex cut, const std::function<bool()>& stop,
                                      Candidates& candidates);

}  // namespace hw::planners

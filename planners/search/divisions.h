// SPDX-License-Identifier: MIT
// Ways to cut a forward pass into segments, for plans to begin with.
#pragma once

#include <array>
#include <vector>

#include "planners/chen/segments.h"

namespace hw::planners {

/// The last segment's share of the saved bytes, and how much larger each one before it is, for a
/// budget as large as the peak: what is kept of a segment is free for the one before it.
struct Division {
    double last, growth;
};

/// The likeliest first.
inline constexpr std::array<Division, 14> kDivisions{{{0.02, 0.4},
                                                      {0.04, 0.8},
                                                      {0.08, 0.8},
                                                      {0.04, 0.4},
                                                      {0.08, 0.4},
                                                      {0.02, 0.8},
                                                      {0.08, 0},
                                                      {0.16, 0},
                                                      {0.04, 0},
                                                      {0.01, 0.4},
                                                      {0.16, 0.4},
                                                      {0.02, 0},
                                                      {0.01, 0.8},
                                                      {0.16, 0.8}}};

/// Per storage: made in one segment and read in a later one of the forward pass, where that is cut
/// where little crosses (chen::narrowCuts). `share`: of the budget in the peak of keeping
/// everything.
std::vector<bool> crossingStorages(const core::TrainingGraph& graph,
                                   const chen::ForwardPass& forward, const Division& division,
                                   double share);

}  // namespace hw::planners

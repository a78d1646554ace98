// SPDX-License-Identifier: MIT
// The best of all plans that can be put together from given ones.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/memory/stage_judge.h"

namespace hw::planners {

/// What a stage costs and how high it rises depends on the items retained into it and out of it
/// alone. So among all plans that begin every stage with the residents that one of `plans` has
/// there, the fastest within the judge's budget is a shortest path: a node for every stage and
/// distinct set of residents, an edge for every pair of sets around a stage. (What tour merging,
/// Cook and Seymour, INFORMS J. Computing 15(3), 2003, does for tours.) Lazy views count where
/// their item is rebuilt, which can differ a little from the judge's own count.
///
/// Leaves that plan in `judge`, whose matrix may be any before. Returns false, with `judge` as it
/// was, when no such plan fits or `stop` said true. To bound the work, only the first `width` sets
/// of each stage, in the order of `plans`, are tried in all pairs, where not more than 16 items
/// would be added at once; further ones just as their plans have them next to each other.
bool recombine(core::StageJudge& judge, const std::vector<core::RetentionMatrix>& plans,
               std::size_t width, const std::function<bool()>& stop);

}  // namespace hw::planners

// SPDX-License-Identifier: MIT
// DTR's greedy eviction with the future known: a first plan in milliseconds.
#pragma once

#include <functional>
#include <vector>

#include "core/memory/stage_judge.h"

namespace hw::planners {

/// How the time to the next use weighs in the score of an eviction: rebuild time / bytes, divided
/// by the distance, by its square root, or not at all.
enum class Distance { Full, Root, None };

/// Walks the stages of a fresh judge in order; where a stage exceeds the budget it drops the
/// retained item with the lowest score until its next reader. It is DTR (Kirisame et al., ICLR
/// 2021, section 4) with the known next use in place of staleness, the exact change of the plan's
/// time in place of the neighbourhood's cost for the most promising candidates, and evictions dated
/// back to the last reader. A stage that stays over budget is left so: the caller looks at
/// overflow(). `bias`, one factor an item (empty: all 1), makes items dearer to drop.
void lookahead(core::StageJudge& judge, Distance distance, const std::vector<float>& bias,
               const std::function<bool()>& stop);

/// Makes the matrix keep, across each stage of `cuts` (ascending), exactly the items of `resident`
/// (one flag a cut and item): what is kept stays until its last reader, what is not is rebuilt when
/// it is first touched after the cut and stays from then on. The budget is not looked at.
void importResidents(core::StageJudge& judge, const std::vector<core::StageIndex>& cuts,
                     const std::vector<std::vector<bool>>& resident);

}  // namespace hw::planners

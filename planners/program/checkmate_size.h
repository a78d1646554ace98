// SPDX-License-Identifier: MIT
// How much of a graph Checkmate's program (checkmate_program.h) looks at, and what its S means as a
// retention matrix of the stage judge.
//
// Coarse programs, for graphs on which even the linear relaxation is too large: neighbouring stages
// form one group, whose recomputations all happen before its first op; items in `kept` are retained
// as long as anything reads them. Their plans are plans of the full program, their optimum may be
// higher.
#pragma once

#include <cstddef>
#include <vector>

#include "core/memory/stage_judge.h"

namespace hw::planners {

struct CheckmateSize {
    std::vector<core::StageIndex> begin;  // first stage of each group, ascending from 0
    std::vector<bool> kept;               // per item: always retained; empty: none
};
/// Every stage a group of its own, no item kept: the program of the paper.
CheckmateSize fullSize(const core::StageModel& model);
/// `groups` groups of about as many stages each; the smallest items, together at most
/// `keptBytes`, are always retained.
CheckmateSize coarseSize(const core::StageModel& model, std::size_t groups, core::Bytes keptBytes);

/// About how many variables the program has; exact to some tenths of it.
std::size_t estimatedColumns(const core::StageModel& model, const CheckmateSize& size);

/// First stage after group `g`.
core::StageIndex groupEnd(const core::StageModel& model, const CheckmateSize& size, std::size_t g);
bool isKept(const CheckmateSize& size, core::ItemIndex i);
/// Per op: the last stage for which it may be worth running again; kNone: never.
std::vector<core::StageIndex> usefulUntil(const core::StageModel& model, const CheckmateSize& size);

/// S as bits: 1 from `threshold` upwards.
std::vector<std::vector<bool>> roundRetained(const std::vector<std::vector<double>>& retained,
                                             double threshold);

/// Makes a fresh judge's retention matrix the one that the program means by S; the judge then finds
/// the least recomputation for it (section 5, second phase).
void importRetained(core::StageJudge& judge, const CheckmateSize& size,
                    const std::vector<std::vector<bool>>& retained);

}  // namespace hw::planners

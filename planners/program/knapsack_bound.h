// SPDX-License-Identifier: MIT
// A lower bound for steps whose cut program (cut_relaxation.h) takes too long.
#pragma once

#include "core/memory/stage_model.h"
#include "planners/program/cut_relaxation.h"

namespace hw::planners {

/// What is left of the program of one cut, at stage `cut`, without (2), (3), (4) and (6), and with
/// one row (1) for each storage: a fractional knapsack (Dantzig 1957). Its items are the ops before
/// the cut: to run one again frees its results there, and takes its time. In time ops log ops.
PartsBound boundByKnapsack(const core::StageModel& model, core::Bytes budget, core::StageIndex cut);

}  // namespace hw::planners

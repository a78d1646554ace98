// SPDX-License-Identifier: MIT
// A lower bound on the time of any plan within a budget, and what a cheap plan would keep.
//
// Theorem. Choose stages t_1 < … < t_K. For a plan that computes the ops for the first time in
// captured order and keeps the budget B, let U[k,i] = 1 when item i is resident while the op of
// stage t_k runs for the first time, and R[k,o] = 1 when op o, captured before t_k, is re-run after
// that instant and before t_(k+1) (or the end). Then, for items born before t_k:
//
//   (1) an op that is first computed in that segment and reads i: U[k,i] + R[k,p(i)] >= 1, where
//       p(i) is the last op, captured before t_k, of the chain that rebuilds i;
//   (2) a re-run op o that reads i:                R[k,o] <= U[k,i] + R[k,p(i)];
//   (3) a later op of a chain needs the ones before it: R[k,o] <= R[k,previous op of the chain];
//   (4) what is resident at a cut was kept or rebuilt:  U[k,i] <= U[k-1,i] + R[k-1,p(i)];
//   (5) at each cut the op's own inputs are resident, and
//       sum_i bytes(i) U[k,i] <= B - (constants and unrebuildable storages) - outputs - workspace;
//   (6) between two readers of a view of i that lie on both sides of a cut, with U[k,i] = 0 there,
//       the view has to be run once more.
//
// Each line holds for every such plan, so the minimum of sum time(o) R[k,o] + (6) over 0/1 (or over
// [0, 1], or with the smallest items counted as no bytes in (5)) plus the baseline's time is a
// lower bound on the plan's time. Assumed is only what the judge demands: first computations in
// captured order and re-runs by the captured op. The cuts see memory at K instants only, which is
// why the program is small; K = 1 at the baseline's peak is nearly tight for budgets above 0.3 of
// it.
#pragma once

#include <optional>
#include <vector>

#include "core/memory/stage_model.h"

namespace hw::planners {

struct CutOptions {
    double timeLimitSeconds = 10;
    std::int64_t nodeLimit = -1;  // of branch and bound; -1: none. Deterministic, unlike the time
    bool integer = true;          // false: the linear relaxation
    int threads = 1;
};

struct CutSolution {
    bool infeasible = false;  // proven: no plan keeps the budget
    bool optimal = false;     // the program was solved to its end
    core::Nanoseconds bound;  // proven lower bound of the total time of any plan
    /// Per cut and item: resident while the cut's op runs, in the best solution found; empty when
    /// there was none. An item not born yet, or not needed any more, is false.
    std::vector<std::vector<bool>> resident;
};

/// Whether this build has the solver (HiGHS).
bool haveSolver();

/// Solves the relaxation for `budget` with cuts at the given stages (ascending). None when the
/// build has no solver or the solver failed; a solution without `optimal` still has a valid bound.
std::optional<CutSolution> solveCuts(const core::StageModel& model, core::Bytes budget,
                                     const std::vector<core::StageIndex>& cuts,
                                     const CutOptions& options);

}  // namespace hw::planners

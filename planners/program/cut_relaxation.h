// SPDX-License-Identifier: MIT
// A lower bound on the time of any plan within a budget, and what a cheap plan would keep.
//
// Theorem. Choose stages t_1 < … < t_K. For any schedule that the judge accepts and that keeps the
// budget B, let U[k,s] = 1 when storage s is resident while the op of stage t_k runs for the first
// time, and R[k,o] = 1 when op o, captured before t_k, is re-run after that instant and before
// t_(k+1) (or the end). Let p(s,v) be the last op captured before t_k among the creator of s and
// its first v in-place writers. Then, for storages born before t_k:
//
//   (1) an op that is first computed in that segment and reads s at version v:
//                                                  U[k,s] + R[k,p(s,v)] >= 1;
//   (2) a re-run op o that reads s at version v:   R[k,o] <= U[k,s] + R[k,p(s,v)];
//   (3) the same for what an in-place op writes, at the version before: without s at the cut, the
//       ops of its chain are re-run one after the other;
//   (4) what is resident at a cut was kept or made again, maybe at an older version:
//                                                  U[k,s] <= U[k-1,s] + R[k-1,creator of s];
//   (5) at each cut the op's own operands are resident, and
//       sum_s bytes(s) U[k,s] <= B - (what must be there) - outputs - workspace;
//   (6) between two readers of a view of s that lie on both sides of a cut, with U[k,s] = 0 there,
//       the view has to be run once more.
//
// A constant cannot be made again (its R is 0), nor can what an op made that writes a constant: it
// must be there until an op that is not computed yet reads it. After that a plan may free it, and
// what is computed from it is then lost too; R says so where it reads U.
//
// Each line holds for every such schedule, whatever the order of its recomputations and however
// often it drops and rebuilds a storage, so the minimum of sum time(o) R[k,o] + (6) over 0/1 (or
// over [0, 1], or with the smallest storages counted as no bytes in (5)) plus the baseline's time
// is a lower bound on its time. Assumed is only what the judge demands: first computations in
// captured order, views apart, and inputs at the version that was captured. Views may be first
// computed at any time, so they neither mark a cut nor count as first computations in (1) and (6).
// Encoded storages and other implementations of an op are outside of it.
// tests/unit/highwater_test.cpp holds it against a search over all schedules of small graphs.
//
// The cuts see memory at K instants only, which is why the program is small; K = 1 at the
// baseline's peak is nearly tight for budgets above 0.3 of it.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "core/memory/stage_model.h"
#include "planners/program/linear_program.h"

namespace hw::planners {

struct CutOptions {
    SolveLimits limits{.seconds = 10};
    bool integer = true;  // false: the linear relaxation
    std::function<bool()> cancelled = [] { return false; };
    /// One flag an item, or none at all: resident at the cuts where it exists, at any cost. The
    /// bound is then one for such plans only.
    std::vector<bool> kept;
};

struct CutSolution {
    SolveStatus status = SolveStatus::Infeasible;  // then proven: no plan keeps the budget
    core::Nanoseconds bound;  // proven lower bound of the total time of any plan
    /// Per cut and item: resident while the cut's op runs, in the best solution found; empty when
    /// there was none. An item not born yet, or not needed any more, is false.
    std::vector<std::vector<bool>> resident;
};

/// Solves the relaxation for `budget` with cuts at the given stages (ascending). None when the
/// build has no solver or the solver failed. The bound is valid whatever ended the solve.
std::optional<CutSolution> solveCuts(const core::StageModel& model, core::Bytes budget,
                                     const std::vector<core::StageIndex>& cuts,
                                     const CutOptions& options);

struct PartsBound {
    core::Nanoseconds bound;  // of the total time of any plan
    bool impossible = false;  // proven: no plan keeps the budget
};

/// A bound for steps of many passes, with one cut in each (ascending): the sum, over the cuts, of
/// what programs of one cut say that their segment takes, which each hold for themselves. Two
/// things make a program small: it lets go of (4), which binds one cut to the next, and of (2) and
/// (3) for ops captured before the cut before. Equal programs, as equal passes have them, are
/// solved once. Time that is not enough lowers the bound, which holds whatever ended the solve.
PartsBound boundByParts(const core::StageModel& model, core::Bytes budget,
                        const std::vector<core::StageIndex>& cuts, const CutOptions& options);

}  // namespace hw::planners

// SPDX-License-Identifier: MIT
// The integer program of Checkmate (Jain et al., "Checkmate: Breaking the Memory Wall with Optimal
// Tensor Rematerialization", MLSys 2020, section 4) on the stage model.
//
// The unrolled stages of the paper are the stages of core/memory/stage_model.h: the t-th computes
// the t-th op for the first time (its R[t,t] = 1), after whatever it recomputes, in captured order.
// With i an item, c an op of the chain that rebuilds it, and all of them captured before stage t:
//
//   S[t,i]  item i is retained into stage t            (a 0/1 variable)
//   R[t,o]  op o is re-run in stage t                  (0/1 by itself once S is)
//   (1b)    S[t+1,i] <= S[t,i] + R[t,c]                what is retained was there or was rebuilt
//   (1c)    R[t,o]   <= S[t,i] + R[t,c], o reads i     (1 <= ... for the op of the stage)
//   (2-3)   U[t,o]: bytes while stage t is about to run op o, from U[t,0] = sum of S[t,i], plus
//           what is made and less what is freed; U[t,o] + (new bytes + workspace) R[t,o] <= budget
//   (4-9)   FREE: item i goes after its last reader of the stage. Instead of products, made linear
//           with hazard counts, D[t,i,o] = "i is still needed at o" has one variable a reader:
//           D[t,i,o] >= R[t,o], D[t,i,next reader], and S[t+1,i] at the last one. FREE is the
//           difference of two neighbours. The 0/1 points are the same as those of the paper's (9).
//
// Departures from the paper, all of them so that the program charges what the judge charges:
// several outputs of an op are separate items (made together, kept apart, duplicates charged while
// the op runs); in-place writers belong to the chain of their item; constants and storages that
// cannot be rebuilt are charged as long as anything may read them; a lazy view takes no bytes and
// costs its time once in every unbroken lifetime of its item in which it is read (variables V, the
// view is run in the stage, and Y, it is still defined at its end). The optimum is that of the best
// retention matrix of StageJudge. It is no bound for plans of other forms: those that recompute in
// another order within a stage or drop and rebuild a storage twice in one; cut_relaxation.h bounds
// them.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "planners/program/checkmate_size.h"
#include "planners/program/linear_program.h"

namespace hw::planners {

struct CheckmateOptions {
    SolveLimits limits{.seconds = 10};
    bool integer = true;  // false: the linear relaxation
    /// A plan within the budget to begin with; may be absent.
    const core::StageJudge* start = nullptr;
    std::function<bool()> cancelled = [] { return false; };
};

struct CheckmateSolution {
    /// Infeasible: proven, no retention matrix of this size keeps the budget.
    SolveStatus status = SolveStatus::Infeasible;
    core::Nanoseconds bound;  // no matrix of this size that keeps the budget takes less time
    /// S: per group and item how far it is retained into the group's first stage, 0 to 1; empty
    /// when no point was found.
    std::vector<std::vector<double>> retained;
};

/// Solves the program. None when the build has no solver or the solver failed.
std::optional<CheckmateSolution> solveCheckmate(const core::StageModel& model, core::Bytes budget,
                                                const CheckmateSize& size,
                                                const CheckmateOptions& options);

}  // namespace hw::planners

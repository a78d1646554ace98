// SPDX-License-Identifier: MIT
#pragma once

#include "planners/planner.h"

namespace hw::planners {

/// Dynamic Tensor Rematerialization (Kirisame et al., ICLR 2021), run over the captured order: ops
/// are computed as they come, the storage with the lowest score is evicted when memory runs out,
/// and what is needed again is rematerialized with its parents. The actions that it took become a
/// static schedule.
///
/// Reproduces the paper's simulator (runtime V2, eager eviction, cached equivalence classes) on its
/// logs exactly: clock, peak and score evaluations. Constants are pinned for good there. On
/// recorded sessions it departs from it where the simulator has no notion of the matter: a
/// computation asks for its workspace too; an eviction drops every version of a storage, and
/// writers are re-run after the creator; a storage whose rebuild would become impossible stays;
/// constants go once nothing can need them; siblings nobody needs any more are not brought back.
///
/// Figures: clock (ns, starts at 1), evals (scores computed), accesses (storages looked at for
/// them), peak (bytes, of the runtime).
class Dtr : public Planner {
public:
    enum class Heuristic {
        EqClass
    };  // section 4.1: cost of the evicted neighbourhood by union-find
    explicit Dtr(Heuristic heuristic) : heuristic_(heuristic) {}

    Proposal plan(const core::TrainingGraph& graph, const PlanRequest& request,
                  const Progress& progress) const override;

private:
    Heuristic heuristic_;
};

}  // namespace hw::planners

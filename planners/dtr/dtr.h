// SPDX-License-Identifier: MIT
#pragma once

#include "planners/dtr/dtr_heuristic.h"
#include "planners/planner.h"

namespace hw::planners {

/// Dynamic Tensor Rematerialization (Kirisame et al., ICLR 2021), run over the captured order: ops
/// are computed as they come, the storage with the lowest score is evicted when memory runs out,
/// and what is needed again is rematerialized with its parents. The actions that it took become a
/// static schedule.
///
/// Reproduces the paper's simulator (runtime V2, eager eviction, cached metadata) on its logs
/// exactly: clock, peak, score evaluations and metadata accesses. Constants are pinned for good
/// there. On recorded sessions it departs from it where the simulator has no notion of the matter:
/// a computation asks for its workspace too; an eviction drops every version of a storage, and
/// writers are re-run after the creator; a storage whose rebuild would become impossible stays;
/// constants go once nothing can need them; siblings that are not needed any more are not brought
/// back.
///
/// Metadata kept between scores: every heuristic, the compute of a storage and its last access;
/// eqclass, the sum of each class; full and msps, for each storage the evicted storages reachable
/// from it in either direction, their compute, and the resident storages at their border. With
/// banishing the latter are found again for every score, as in the simulator's first runtime.
///
/// Options: `dealloc`, what happens when the program drops its last reference to a storage (paper,
/// appendix on deallocation). `eager` (default): it is evicted at once, and comes back where a
/// rematerialization needs it. `banish`: it waits until no evicted storage was computed from it,
/// then it is freed for good, constants too, and what was computed from it is pinned. Departure: a
/// banishing is tried again as soon as one of its evicted dependents is banished itself.
///
/// `frees`, when the schedule frees what was evicted: `early` (default), after its last use, except
/// across the moment of the peak, so that the peak is the runtime's own; `late`, when the runtime
/// evicted it, which is when memory ran out: the paper's Figures 7 to 10. Departure: a runtime
/// cannot know the last use, a plan does, and memory that is not full all the time can be laid out
/// with little fragmentation.
///
/// A time limit ends the run without a plan, for `full` and `msps` find neighbourhoods again at
/// each eviction: on a step of N ops they take time like N squared, which is what the paper's
/// classes avoid (section 4.1).
///
/// `search`, among which storages the lowest score is looked for: `all` (default), or `some` that
/// are drawn, as many as the square root of all, as in the paper's prototype (section 5) and in
/// programs that train under a budget: the same ones for the same step.
///
/// Figures: clock (ns, starts at 1), evals (scores that a search of the whole pool computes),
/// accesses (storages looked at for them and for the metadata; fewer than the simulator's where a
/// pool of thousands is searched by blocks), peak (bytes, of the runtime).
class Dtr : public Planner {
public:
    using Heuristic = DtrHeuristic;
    explicit Dtr(Heuristic heuristic) : heuristic_(heuristic) {}
    /// Of a heuristic that is a planner of its own.
    static PlannerInfo info(Heuristic heuristic);
    /// Of that name ("dtr:lru"); none: no planner of DTR is called so.
    static std::optional<Heuristic> find(std::string_view name);

    Proposal plan(const core::TrainingGraph& graph, const PlanRequest& request,
                  const Progress& progress) const override;

private:
    Heuristic heuristic_;
};

}  // namespace hw::planners

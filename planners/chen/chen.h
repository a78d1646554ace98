// SPDX-License-Identifier: MIT
// Chen, Xu, Zhang, Guestrin: "Training Deep Nets with Sublinear Memory Cost" (2016).
//
// Departures that all four share. The paper cuts chains at single values; here, on general graphs,
// a cut keeps every rebuildable storage that later forward ops use, whether the backward pass reads
// it or not, and cuts lie where little crosses them. Within a segment only what the backward pass
// needs is rebuilt, in-place writers in their order. A storage whose rebuild would become
// impossible (rule 7) is never dropped. Ops before the first one of the backward phase are the
// forward pass; a graph without phases has nothing to drop and gets the baseline.
#pragma once

#include "planners/planner.h"

namespace hw::planners {

/// Section 4.3: sqrt(n) segments, whatever the budget: memory O(sqrt n), at most one extra forward
/// pass on a chain. n counts the forward results by size (see ForwardPass::effectiveLength) and the
/// segments are of equal bytes, not of equal numbers of layers. Where the plan's peak is above that
/// of keeping everything, everything is kept: never worse than the baseline.
class ChenSqrt : public Planner {
public:
    static PlannerInfo info();
    Proposal plan(const core::TrainingGraph& graph, const PlanRequest& request,
                  const Progress& progress) const override;
};

/// Section 4.4 with k = 1: the forward pass is split in two, each half again while its backward
/// pass runs, and so on: memory O(log n), time O(n log n). A segment is split no further where what
/// crosses the cut outweighs what the split saves, as on ops that no cut separates well. Ignores
/// the budget. Of the recursion and of keeping everything, what has the lower peak is the plan.
class ChenRecursive : public Planner {
public:
    static PlannerInfo info();
    Proposal plan(const core::TrainingGraph& graph, const PlanRequest& request,
                  const Progress& progress) const override;
};

/// Algorithm 3 with the budget search of Appendix A: a segment is closed when it would hold more
/// than B bytes. B is searched on a grid in the logarithm between the largest feature map and the
/// whole forward pass, the fastest plan within the budget wins.
///
/// Departures, for general graphs and budgets. Besides cutting where the bound is passed, at local
/// minima of what crosses, cuts are also tried before the bound is passed. The grid of B spans the
/// whole range, not sqrt(2) around sqrt(xy). Behind the last cut nothing is dropped, and the fewest
/// cuts that keep the budget are searched by bisection: what is needed first in the backward pass
/// stays first. Where no B keeps the budget, because the backward pass of a single segment needs
/// too much at once, segments are split further as in section 4.4, down to a second bound that is
/// searched with B. The work limit counts replayed ops (default 1,000,000, a second or two);
/// it bounds what follows the first search over B. The time limit bounds all of it.
class ChenGreedy : public Planner {
public:
    static PlannerInfo info();
    Proposal plan(const core::TrainingGraph& graph, const PlanRequest& request,
                  const Progress& progress) const override;
};

/// Section 4.2, "drop the results of low cost operations": results of dear ops such as convolution
/// and matrix product are kept; those of batch norm, ReLU, pooling and the like are dropped and
/// rebuilt from them.
///
/// Departures: the paper names the cheap ops; here measured time decides. A result's class comes
/// from the time per byte of the ops that make it (its creator and in-place writers): the split of
/// the logarithms, weighted by bytes, into two classes with the largest variance between them
/// (Otsu's threshold). Long runs of cheap ops (residual sums) would have to be rebuilt from far
/// back: where the rebuild of a result, that of dropped inputs included, takes as long per byte as
/// a dear one, it is kept. The budget decides how much is dropped: results go in the order of
/// rebuild time per byte, 0 to 32 thirty-seconds of the cheap bytes, and the fastest plan wins.
/// Option `all=1`: all cheap results go, whatever the budget, as in the paper.
class ChenCheap : public Planner {
public:
    static PlannerInfo info();
    Proposal plan(const core::TrainingGraph& graph, const PlanRequest& request,
                  const Progress& progress) const override;
};

}  // namespace hw::planners

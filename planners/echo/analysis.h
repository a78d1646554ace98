// SPDX-License-Identifier: MIT
// Which feature maps Echo recomputes: the two passes of its Algorithm 1 over a captured step.
#pragma once

#include <cstdint>
#include <vector>

#include "core/graph/training_graph.h"
#include "core/memory/rebuild.h"
#include "planners/schedule/forward_pass.h"

namespace hw::planners {

/// Zheng et al., "Echo" (ISCA 2020), Algorithm 1, on storages instead of operator outputs.
///
/// A *feature map* is a storage that the forward pass makes and a later op reads. Which ones a
/// gradient needs is read off the captured backward ops, so that an op whose gradient needs its
/// inputs only is a dead node by itself: its output is not asked for, and it is never run again.
///
/// *Compute-heavy* is measured, not named: an op whose time for each byte that it makes is above
/// that of the whole forward pass. Run time is spread unevenly over the ops of a training step
/// (the paper's second observation), so few ops raise the mean and most lie below it.
class EchoAnalysis {
public:
    /// `keep`: storages that stay whatever the analysis says. The others must outlive it.
    EchoAnalysis(const core::TrainingGraph& graph, const core::RebuildInfo& info,
                 const ForwardPass& forward, std::vector<bool> keep);

    /// Backward expansion: from each feature map up through cheap ops, to the compute-heavy ones.
    RecomputeSet expand() const;

    /// Forward trimming: from the border downwards an op leaves the set when keeping its outputs
    /// takes no more bytes than keeping what it reads. An input that is there anyway costs nothing;
    /// one that has to be kept for the recomputation is shared among the ops of the set that read
    /// it (shared use references). Repeated until nothing changes, since a trimmed op takes its
    /// references along.
    void trim(RecomputeSet& set) const;

    /// Splits recomputations of more than `limit` bytes by keeping storages between their parts.
    /// The paper needs none: time steps of an RNN bound its subgraphs. Captured graphs have chains
    /// of cheap ops through all time steps (cell states, residual connections), and the buffers of
    /// one recomputation are reused by the next only where they end.
    void split(RecomputeSet& set, core::Bytes limit) const;

    core::Bytes bytesOf(const RecomputeSet& set) const;

private:
    void classify();
    bool cheap(core::StorageIndex s) const;
    void dropUseless(RecomputeSet& set) const;
    bool trimOnce(RecomputeSet& set) const;

    const core::TrainingGraph& graph_;
    const core::RebuildInfo& info_;
    const ForwardPass& forward_;
    std::vector<bool> keep_;
    std::vector<bool> heavy_;  // compute-heavy, by op
};

}  // namespace hw::planners

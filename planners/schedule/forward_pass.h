// SPDX-License-Identifier: MIT
// What planners that recompute parts of the forward pass share: what it saves for later, what a
// rebuild reads, and the schedule that follows from a choice.
#pragma once

#include <span>
#include <vector>

#include "core/base/lists.h"
#include "core/graph/training_graph.h"
#include "core/memory/rebuild.h"
#include "core/plan/plan.h"

namespace hw::planners {

/// Storages by index: recomputed (true) or kept.
using RecomputeSet = std::vector<bool>;

class ForwardPass {
public:
    /// `graph` and `info` must outlive it.
    ForwardPass(const core::TrainingGraph& graph, const core::RebuildInfo& info);

    core::OpIndex end() const { return end_; }  // first backward op
    /// Storages that the forward pass makes, in the order of their creators.
    const std::vector<core::StorageIndex>& storages() const { return storages_; }
    /// Made in the forward pass and needed later: a saved activation, or feature map.
    bool saved(core::StorageIndex s) const;
    /// Distinct storages that a rebuild of a forward storage reads, itself left out.
    std::span<const core::StorageIndex> reads(core::StorageIndex s) const { return reads_[s]; }

    /// The schedule that drops every saved storage of `set` after its last forward use and rebuilds
    /// it when it is needed; what a rebuild reads and `set` does not hold stays until then. Members
    /// must be rematerializable.
    core::Schedule recompute(const RecomputeSet& set) const;

private:
    core::OpIndex lastForwardUse(core::StorageIndex s) const;
    std::vector<core::OpIndex> neededUntil(const RecomputeSet& set) const;

    const core::TrainingGraph& graph_;
    const core::RebuildInfo& info_;
    core::OpIndex end_;
    std::vector<core::StorageIndex> storages_;
    core::IndexLists reads_;
};

}  // namespace hw::planners

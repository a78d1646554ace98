// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "planners/dtr_heuristics.h"
#include "planners/evicted_walk.h"

namespace hw::planners {

/// h_DTR, h_MSPS and h_e* (section 4.1 and appendix): scores over the evicted neighbourhood e*(s),
/// the evicted storages that s leads to or was made from without a resident storage between.
///
/// A *region* is one direction of it. Regions of resident storages are kept up to date: an eviction
/// hands the region of the evicted storage to those that it borders on, a rematerialization
/// rebuilds them. As in the simulator, what lies in both directions (through a view) counts twice,
/// a region changes only on those two occasions, and msps pays for both directions though it reads
/// one: this decides its counts of accesses, and, where an op made views only, its scores.
class RegionHeuristic final : public EvictionHeuristic {
public:
    /// @param cache false: walk the neighbourhood anew for every score
    RegionHeuristic(DtrState& state, DtrHeuristic kind, bool cache);

    void materialized(const std::vector<core::StorageIndex>& made) override;
    void evicted(core::StorageIndex s) override;
    void banished(core::StorageIndex s) override;

private:
    double score(core::StorageIndex s) override;
    std::int64_t computeOf(core::StorageIndex s, Direction direction);
    void absorb(Region& region, const Region& evicted, core::StorageIndex s);

    DtrHeuristic kind_;
    bool cache_;
    EvictedWalk walk_;
    std::vector<Region> regions_[2];  // [direction][storage]
    StorageSet border_;
    std::vector<core::StorageIndex> bases_;
};

}  // namespace hw::planners

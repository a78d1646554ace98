// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "planners/dtr/evicted_neighborhood.h"
#include "planners/dtr/heuristics.h"

namespace hw::planners {

/// h_DTR, h_MSPS and h_e* (section 4.1 and appendix): scores over the evicted neighbourhood e*(s),
/// the evicted storages that s leads to or was made from without a resident storage between.
///
/// A *region* is one direction of it. Regions of resident storages are kept up to date: an eviction
/// hands the region of the evicted storage to those that it borders on, a rematerialization
/// rebuilds them. As in the simulator, what lies in both directions (through a view) counts twice,
/// a region changes only on those two occasions, and msps pays for both directions though it reads
/// one: this decides its counts of accesses, and, where an op made views only, its scores.
///
/// Most rebuilds follow the first computation of a storage that nothing was computed from yet. Then
/// a region gains one storage at its border, and its walk would count what is known already; so
/// each region remembers whether it is *exact*, what a walk would find now.
class RegionHeuristic final : public EvictionHeuristic {
public:
    /// @param cache false: find the neighbourhood again for every score
    RegionHeuristic(DtrState& state, DtrHeuristic kind, bool cache);

    void resize(std::size_t storages) override;
    void linked(core::StorageIndex input, core::StorageIndex output) override;
    void materialized(const std::vector<core::StorageIndex>& made) override;
    void evicted(core::StorageIndex s) override;
    void banished(core::StorageIndex s) override;

private:
    double score(core::StorageIndex s) override;
    std::int64_t computeOf(core::StorageIndex s, Direction direction);
    void rebuild(Items<core::StorageIndex> bases, Direction direction);
    void absorb(core::StorageIndex base, Direction direction, core::StorageIndex s);

    bool exact(core::StorageIndex s, Direction direction) const {
        return exact_[direction][s] == epoch_[direction];
    }
    void forget(core::StorageIndex s, Direction direction) { exact_[direction][s] = 0; }
    void forgetAll(Direction direction) { ++epoch_[direction]; }

    DtrHeuristic kind_;
    bool cache_;
    EvictedNeighborhood neighborhood_;
    std::vector<Region> regions_[2];      // [direction][storage]
    std::vector<std::int64_t> exact_[2];  // [direction][storage]: the epoch in which it is exact
    std::int64_t epoch_[2] = {1, 1};
    StorageSet border_;
    std::vector<core::StorageIndex> bases_;
};

}  // namespace hw::planners

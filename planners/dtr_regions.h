// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "planners/dtr_heuristics.h"

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

private:
    enum Direction { Descendants, Ancestors };
    struct Region {
        std::vector<core::StorageIndex> interior, frontier;  // evicted; resident at the border
        std::int64_t compute = 0;                            // ns, of the interior
    };

    double score(core::StorageIndex s) override;
    std::int64_t computeOf(core::StorageIndex s, Direction direction);
    void rebuild(core::StorageIndex base, Direction direction);
    void absorb(Region& region, const Region& evicted, core::StorageIndex s);
    std::int64_t nextStamp() { return ++stamp_; }

    DtrHeuristic kind_;
    bool cache_;
    std::vector<Region> regions_[2];  // [direction][storage]
    std::vector<std::int64_t> marks_;
    std::int64_t stamp_ = 0;
    std::vector<core::StorageIndex> stack_, affected_[2];
};

}  // namespace hw::planners

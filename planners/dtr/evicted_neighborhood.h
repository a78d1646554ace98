// SPDX-License-Identifier: MIT
// Evicted neighbourhoods (DTR, section 4.1): what a storage leads to, or was made from, without a
// resident storage between.
#pragma once

#include <vector>

#include "planners/dtr/state.h"

namespace hw::planners {

/// One direction of the evicted neighbourhood of a storage.
struct Region {
    StorageSet interior, frontier;  // evicted storages, and the resident ones at their border
    std::int64_t compute = 0;       // ns, of the interior
    std::int64_t tensors = 0;       // that join the interior to others: the accesses of a walk
};

/// Finds them, breadth first.
class EvictedNeighborhood {
public:
    /// Storages start as evicted: those that are not computed yet count so.
    explicit EvictedNeighborhood(DtrState& state);

    void resize(std::size_t storages);
    void nowResident(core::StorageIndex s) { evicted_.clear(s), resident_.set(s); }
    void nowEvicted(core::StorageIndex s) { evicted_.set(s), resident_.clear(s); }
    void nowGone(core::StorageIndex s) { evicted_.clear(s), resident_.clear(s); }

    bool isResident(core::StorageIndex s) const { return resident_.contains(s); }

    /// Sets `regions[base]` for each base. Every tensor that joins a base or a storage inside to
    /// another counts as an access, for each base again. Many bases cost little more than one: up
    /// to 64 walk together.
    void rebuild(Items<core::StorageIndex> bases, Direction direction,
                 std::vector<Region>& regions);

private:
    /// Sums over the interior of one base of a joint walk.
    struct Sums {
        std::int64_t compute = 0, tensors = 0;
    };

    void rebuildOne(core::StorageIndex base, Direction direction, Region& region);
    void rebuildTogether(Items<core::StorageIndex> bases, Direction direction,
                         std::vector<Region>& regions);
    void spread(Items<StorageSet::Word> joined, std::uint64_t walks);
    void settle(Direction direction);
    void settleWord(std::int32_t index, Direction direction);
    template <typename Add, typename Ended>
    void collect(StorageBitmap& members, std::vector<std::uint64_t>& walksOf, Add add, Ended ended);

    DtrState& state_;
    StorageBitmap resident_, evicted_;   // neither: gone
    StorageBitmap interior_, frontier_;  // of the walk in progress
    std::vector<core::StorageIndex> queue_;
    // Joint walks: bit k is the walk from base k.
    StorageBitmap pending_;                                // storages that new walks have reached
    std::vector<std::uint64_t> inside_, spread_, border_;  // per storage
};

}  // namespace hw::planners

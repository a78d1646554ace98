// SPDX-License-Identifier: MIT
#include "planners/dtr_regions.h"

#include "planners/dtr_score.h"

namespace hw::planners {

using namespace hw::core;

RegionHeuristic::RegionHeuristic(DtrState& state, DtrHeuristic kind, bool cache)
    : EvictionHeuristic(state), kind_(kind), cache_(cache), walk_(state) {
    for (auto& regions : regions_) regions.resize(state.storages.size());
}

double RegionHeuristic::score(StorageIndex s) {
    const DtrStorage& storage = state_.storages[s];
    std::int64_t compute = storage.compute + computeOf(s, Ancestors);
    if (kind_ != DtrHeuristic::Msps) compute += computeOf(s, Descendants);
    const std::int64_t staleness =
        kind_ == DtrHeuristic::Full ? state_.clock - storage.lastAccess : 1;
    return dtrScore(compute, storage.size, staleness);
}

std::int64_t RegionHeuristic::computeOf(StorageIndex s, Direction direction) {
    if (!cache_) walk_.rebuild({&s, 1}, direction, regions_[direction]);
    return regions_[direction][s].compute;
}

void RegionHeuristic::evicted(StorageIndex s) {
    walk_.nowEvicted(s);
    if (!cache_) return;
    Region &below = regions_[Descendants][s], &above = regions_[Ancestors][s];
    // A region may border on its own base, through a view.
    above.frontier.erase(s);
    below.frontier.erase(s);
    above.frontier.forEach(
        [&](StorageIndex ancestor) { absorb(regions_[Descendants][ancestor], below, s); });
    below.frontier.forEach(
        [&](StorageIndex descendant) { absorb(regions_[Ancestors][descendant], above, s); });
    for (Region* region : {&below, &above}) {
        region->interior.clear();
        region->frontier.clear();
        region->compute = 0;
    }
}

void RegionHeuristic::banished(StorageIndex s) {
    walk_.nowGone(s);
}

void RegionHeuristic::materialized(const std::vector<StorageIndex>& made) {
    for (const StorageIndex s : made) walk_.nowResident(s);
    if (!cache_) return;
    for (const Direction direction : {Descendants, Ancestors})
        walk_.rebuild(made, direction, regions_[direction]);
    // What they border on below borders on them above, and the other way round.
    for (const Direction direction : {Descendants, Ancestors}) {
        border_.clear();
        for (const StorageIndex s : made)
            border_.unite(regions_[direction][s].frontier, [](StorageIndex) {});
        bases_.clear();
        border_.forEach([&](StorageIndex s) { bases_.push_back(s); });
        const Direction back = direction == Descendants ? Ancestors : Descendants;
        walk_.rebuild(bases_, back, regions_[back]);
    }
}

// `s`, on the border of `region`, has been evicted: it and its own region become part of it.
void RegionHeuristic::absorb(Region& region, const Region& evicted, StorageIndex s) {
    const auto count = [&](StorageIndex other) {
        ++state_.accesses;
        region.compute += state_.storages[other].compute;
    };
    region.interior.insert(s);
    count(s);
    region.interior.unite(evicted.interior, count);
    region.frontier.erase(s);
    region.frontier.unite(evicted.frontier, [](StorageIndex) {});
}

}  // namespace hw::planners

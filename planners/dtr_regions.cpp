// SPDX-License-Identifier: MIT
#include "planners/dtr_regions.h"

#include <algorithm>

#include "planners/dtr_score.h"

namespace hw::planners {

using namespace hw::core;

RegionHeuristic::RegionHeuristic(DtrState& state, DtrHeuristic kind, bool cache)
    : EvictionHeuristic(state), kind_(kind), cache_(cache), marks_(state.storages.size(), 0) {
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
    if (!cache_) rebuild(s, direction);
    return regions_[direction][s].compute;
}

void RegionHeuristic::evicted(StorageIndex s) {
    if (!cache_) return;
    Region &below = regions_[Descendants][s], &above = regions_[Ancestors][s];
    for (const StorageIndex ancestor : above.frontier)
        if (ancestor != s) absorb(regions_[Descendants][ancestor], below, s);
    for (const StorageIndex descendant : below.frontier)
        if (descendant != s) absorb(regions_[Ancestors][descendant], above, s);
    for (Region* region : {&below, &above}) {
        region->interior.clear();
        region->frontier.clear();
        region->compute = 0;
    }
}

void RegionHeuristic::materialized(const std::vector<StorageIndex>& made) {
    if (!cache_) return;
    for (auto& list : affected_) list.clear();
    for (const StorageIndex s : made) {
        for (const Direction direction : {Descendants, Ancestors}) {
            rebuild(s, direction);
            const auto& frontier = regions_[direction][s].frontier;
            affected_[direction].insert(affected_[direction].end(), frontier.begin(),
                                        frontier.end());
        }
    }
    // A storage made from s has s among its ancestors, and the other way round.
    for (const Direction direction : {Descendants, Ancestors}) {
        auto& list = affected_[direction];
        if (made.size() > 1) {
            std::sort(list.begin(), list.end());
            list.erase(std::unique(list.begin(), list.end()), list.end());
        }
        for (const StorageIndex s : list)
            rebuild(s, direction == Descendants ? Ancestors : Descendants);
    }
}

// Depth first from `base` through evicted storages. Every edge looked at is an access.
void RegionHeuristic::rebuild(StorageIndex base, Direction direction) {
    Region& region = regions_[direction][base];
    region.interior.clear();
    region.frontier.clear();
    region.compute = 0;
    const std::int64_t seen = nextStamp();
    stack_.assign(1, base);
    while (!stack_.empty()) {
        const DtrStorage& at = state_.storages[stack_.back()];
        stack_.pop_back();
        const auto& edges = direction == Descendants ? at.children : at.parents;
        state_.accesses += static_cast<std::int64_t>(edges.size());
        for (const StorageIndex other : edges) {
            if (marks_[other] == seen) continue;
            marks_[other] = seen;
            const DtrStorage& storage = state_.storages[other];
            if (storage.gone) continue;
            if (storage.material) {
                if (other != base) region.frontier.push_back(other);
                continue;
            }
            region.compute += storage.compute;
            region.interior.push_back(other);
            stack_.push_back(other);
        }
    }
}

// `s`, on the border of `region`, has been evicted: it and its own region become part of it.
void RegionHeuristic::absorb(Region& region, const Region& evicted, StorageIndex s) {
    const std::int64_t inside = nextStamp();
    for (const StorageIndex other : region.interior) marks_[other] = inside;
    const auto take = [&](StorageIndex other) {
        ++state_.accesses;
        region.compute += state_.storages[other].compute;
        if (marks_[other] != inside) region.interior.push_back(other);
        marks_[other] = inside;
    };
    take(s);
    for (const StorageIndex other : evicted.interior)
        if (marks_[other] != inside) take(other);

    const std::int64_t border = nextStamp();
    std::erase(region.frontier, s);
    for (const StorageIndex other : region.frontier) marks_[other] = border;
    for (const StorageIndex other : evicted.frontier) {
        if (marks_[other] == border) continue;
        marks_[other] = border;
        region.frontier.push_back(other);
    }
}

}  // namespace hw::planners

// SPDX-License-Identifier: MIT
#include "planners/dtr/regions.h"

#include "planners/dtr/score.h"

namespace hw::planners {

using namespace hw::core;

RegionHeuristic::RegionHeuristic(DtrState& state, DtrHeuristic kind, bool cache)
    : EvictionHeuristic(state), kind_(kind), cache_(cache), neighborhood_(state) {
    resize(state.storages.size());
}

void RegionHeuristic::resize(std::size_t storages) {
    neighborhood_.resize(storages);
    for (auto& regions : regions_) regions.resize(storages);
    for (auto& exact : exact_) exact.resize(storages, 0);
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
    if (!cache_) neighborhood_.rebuild(Items<StorageIndex>(&s, 1), direction, regions_[direction]);
    return regions_[direction][s].compute;
}

// What an op in progress reads or views is rebuilt, with its border, before a region is extended
// for what the op makes; and so is what it makes. A view of one resident storage by another is not.
void RegionHeuristic::linked(StorageIndex input, StorageIndex output) {
    if (!state_.storages[output].everMaterial || input == output) return;
    if (neighborhood_.isResident(input)) forget(input, Descendants);
    if (neighborhood_.isResident(output)) forget(output, Ancestors);
}

void RegionHeuristic::evicted(StorageIndex s) {
    neighborhood_.nowEvicted(s);
    if (!cache_) return;
    Region &below = regions_[Descendants][s], &above = regions_[Ancestors][s];
    // A region may border on its own base, through a view.
    above.frontier.erase(s);
    below.frontier.erase(s);
    above.frontier.forEach([&](StorageIndex ancestor) { absorb(ancestor, Descendants, s); });
    below.frontier.forEach([&](StorageIndex descendant) { absorb(descendant, Ancestors, s); });
    // Where the border is not exact, others border on s and do not learn that it left.
    if (!exact(s, Ancestors)) forgetAll(Descendants);
    if (!exact(s, Descendants)) forgetAll(Ancestors);
    for (Region* region : {&below, &above}) *region = {};
}

void RegionHeuristic::banished(StorageIndex s) {
    neighborhood_.nowGone(s);
    forgetAll(Descendants);
    forgetAll(Ancestors);
}

void RegionHeuristic::materialized(const std::vector<StorageIndex>& made) {
    for (const StorageIndex s : made) neighborhood_.nowResident(s);
    if (!cache_) return;
    for (const Direction direction : {Descendants, Ancestors}) rebuild(made, direction);
    // What they border on below borders on them above, and the other way round.
    for (const Direction direction : {Descendants, Ancestors}) {
        const Direction back = direction == Descendants ? Ancestors : Descendants;
        border_.clear();
        for (const StorageIndex s : made)
            border_.unite(regions_[direction][s].frontier, [](StorageIndex) {});
        bases_.clear();
        border_.forEach([&](StorageIndex s) {
            const bool known = made.size() == 1 && exact(s, back) &&
                               !regions_[back][s].interior.contains(made.front());
            if (!known) return bases_.push_back(s);
            regions_[back][s].frontier.insert(made.front());
            state_.accesses += state_.links.tensors(s, back) + regions_[back][s].tensors;
        });
        rebuild(bases_, back);
    }
}

void RegionHeuristic::rebuild(Items<StorageIndex> bases, Direction direction) {
    neighborhood_.rebuild(bases, direction, regions_[direction]);
    for (const StorageIndex base : bases) exact_[direction][base] = epoch_[direction];
}

// `s`, on the border of a region, has been evicted: it and its own region become part of it.
void RegionHeuristic::absorb(StorageIndex base, Direction direction, StorageIndex s) {
    Region& region = regions_[direction][base];
    const Region& evicted = regions_[direction][s];
    const auto take = [&](StorageIndex other) {
        ++state_.accesses;
        region.compute += state_.storages[other].compute;
        region.tensors += state_.links.tensors(other, direction);
    };
    if (!region.interior.insert(s) || !exact(s, direction)) forget(base, direction);
    take(s);
    region.interior.unite(evicted.interior, take);
    region.frontier.erase(s);
    region.frontier.unite(evicted.frontier, [](StorageIndex) {});
}

}  // namespace hw::planners

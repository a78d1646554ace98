// SPDX-License-Identifier: MIT
#include "planners/dtr/evicted_neighborhood.h"

#include <array>
#include <utility>

namespace hw::planners {

using namespace hw::core;

namespace {

constexpr std::size_t kTogether = 64;  // walks, one bit each

template <typename Visit>
void forEachBit(std::uint64_t bits, Visit visit) {
    for (; bits != 0; bits &= bits - 1) visit(lowestBit(bits));
}

}  // namespace

EvictedNeighborhood::EvictedNeighborhood(DtrState& state)
    : state_(state),
      resident_(state.storages.size()),
      evicted_(state.storages.size(), true),
      interior_(state.storages.size()),
      frontier_(state.storages.size()),
      queue_(state.storages.size() + 1),
      pending_(state.storages.size()),
      inside_(state.storages.size(), 0),
      spread_(state.storages.size(), 0),
      border_(state.storages.size(), 0) {}

void EvictedNeighborhood::resize(std::size_t storages) {
    evicted_.resize(storages, true);
    for (StorageBitmap* bitmap : {&resident_, &interior_, &frontier_, &pending_})
        bitmap->resize(storages);
    queue_.resize(storages + 1);
    for (auto* walks : {&inside_, &spread_, &border_}) walks->resize(storages, 0);
}

void EvictedNeighborhood::rebuild(Items<StorageIndex> bases, Direction direction,
                                  std::vector<Region>& regions) {
    constexpr std::size_t kWorthwhile = 3;
    for (; bases.size() >= kWorthwhile; bases = bases.from(std::min(bases.size(), kTogether)))
        rebuildTogether(bases.first(std::min(bases.size(), kTogether)), direction, regions);
    for (const StorageIndex base : bases) rebuildOne(base, direction, regions[base]);
}

// Breadth first, 64 storages at a time.
void EvictedNeighborhood::rebuildOne(StorageIndex base, Direction direction, Region& region) {
    std::int64_t compute = -state_.storages[base].compute, tensors = 0;
    const LinkTable& links = state_.links;
    std::size_t end = 0;
    queue_[end++] = base;
    for (std::size_t next = 0; next < end; ++next) {
        compute += state_.storages[queue_[next]].compute;
        tensors += links.tensors(queue_[next], direction);
        for (const StorageSet::Word& word : links.words(queue_[next], direction)) {
            const std::int32_t index = word.index;
            frontier_.add(index, word.bits & resident_[index]);
            const std::uint64_t fresh = word.bits & evicted_[index] & ~interior_[index];
            if (fresh == 0) continue;
            interior_.add(index, fresh);
            forEachBit(fresh, [&](int bit) { queue_[end++] = index * 64 + bit; });
        }
    }
    region.compute = compute;
    region.tensors = tensors - links.tensors(base, direction);
    state_.accesses += tensors;
    frontier_.clear(base);
    interior_.moveTo(region.interior);
    frontier_.moveTo(region.frontier);
}

// All walks at once: a storage passes on the set of walks that reached it. Taken in captured order,
// nearly every storage is passed once.
void EvictedNeighborhood::rebuildTogether(Items<StorageIndex> bases, Direction direction,
                                          std::vector<Region>& regions) {
    const LinkTable& links = state_.links;
    for (std::size_t k = 0; k < bases.size(); ++k) {
        Region& region = regions[bases[k]];
        region.interior.clear();
        region.frontier.clear();
        state_.accesses += links.tensors(bases[k], direction);
        spread(links.words(bases[k], direction), std::uint64_t{1} << k);
    }
    settle(direction);

    std::array<Sums, kTogether> sums;
    Sums run;
    collect(
        interior_, inside_,
        [&](StorageIndex s) {
            spread_[s] = 0;
            run.compute += state_.storages[s].compute;
            run.tensors += links.tensors(s, direction);
        },
        [&](std::uint64_t walks, StorageSet::Word members) {
            forEachBit(walks, [&](int k) {
                regions[bases[k]].interior.append(members);
                sums[k].compute += run.compute;
                sums[k].tensors += run.tensors;
            });
            run = {};
        });
    collect(
        frontier_, border_, [](StorageIndex) {},
        [&](std::uint64_t walks, StorageSet::Word members) {
            forEachBit(walks, [&](int k) { regions[bases[k]].frontier.append(members); });
        });
    for (std::size_t k = 0; k < bases.size(); ++k) {
        regions[bases[k]].frontier.erase(bases[k]);
        regions[bases[k]].compute = sums[k].compute;
        regions[bases[k]].tensors = sums[k].tensors;
        state_.accesses += sums[k].tensors;
    }
}

void EvictedNeighborhood::spread(Items<StorageSet::Word> joined, std::uint64_t walks) {
    for (const StorageSet::Word& word : joined) {
        const std::int32_t index = word.index;
        const std::uint64_t border = word.bits & resident_[index];
        const std::uint64_t inside = word.bits & evicted_[index];
        frontier_.add(index, border);
        forEachBit(border, [&](int bit) { border_[index * 64 + bit] |= walks; });
        std::uint64_t reached = 0;
        forEachBit(inside, [&](int bit) {
            std::uint64_t& known = inside_[index * 64 + bit];
            if ((walks & ~known) != 0) reached |= std::uint64_t{1} << bit;
            known |= walks;
        });
        if (reached == 0) continue;
        interior_.add(index, reached);
        pending_.add(index, reached);
    }
}

// Passes on until nothing new is reached. Views of older storages lead backwards: then once more.
void EvictedNeighborhood::settle(Direction direction) {
    while (!pending_.untouched()) {
        const auto [first, last] = pending_.takeRange();
        if (direction == Descendants)
            for (std::int32_t i = first; i <= std::max(last, pending_.last()); ++i)
                settleWord(i, direction);
        else
            for (std::int32_t i = last; i >= std::min(first, pending_.first()); --i)
                settleWord(i, direction);
    }
}

void EvictedNeighborhood::settleWord(std::int32_t index, Direction direction) {
    while (pending_[index] != 0) {
        const int bit =
            direction == Descendants ? lowestBit(pending_[index]) : highestBit(pending_[index]);
        const StorageIndex s = index * 64 + bit;
        pending_.clear(s);
        const std::uint64_t fresh = inside_[s] & ~spread_[s];
        spread_[s] |= fresh;
        spread(state_.links.words(s, direction), fresh);
    }
}

// Calls add(s) for every member and, after each run of members that the same walks reached,
// ended(walks, the run). Runs lie within one word; words come in increasing order. Empties both.
template <typename Add, typename Ended>
void EvictedNeighborhood::collect(StorageBitmap& members, std::vector<std::uint64_t>& walksOf,
                                  Add add, Ended ended) {
    members.drain([&](std::int32_t index, std::uint64_t bits) {
        StorageSet::Word run{index, 0};
        std::uint64_t walks = 0;
        forEachBit(bits, [&](int bit) {
            const StorageIndex s = index * 64 + bit;
            if (walksOf[s] != walks) {
                ended(walks, run);
                run.bits = 0;
            }
            walks = std::exchange(walksOf[s], 0);
            run.bits |= std::uint64_t{1} << bit;
            add(s);
        });
        ended(walks, run);
    });
}

}  // namespace hw::planners

// SPDX-License-Identifier: MIT
// DTR's eviction heuristics: each keeps its own metadata, told by the runtime what happens.
#pragma once

#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "planners/dtr/dtr_heuristic.h"
#include "planners/dtr/state.h"

namespace hw::planners {

class EvictionHeuristic {
public:
    explicit EvictionHeuristic(DtrState& state) : state_(state) {}
    virtual ~EvictionHeuristic() = default;
    EvictionHeuristic(const EvictionHeuristic&) = delete;
    EvictionHeuristic& operator=(const EvictionHeuristic&) = delete;

    /// There are more storages, as in the state.
    virtual void resize(std::size_t /*storages*/) {}
    /// `s` can be evicted from now on; no longer.
    virtual void entered(core::StorageIndex /*s*/) {}
    virtual void left(core::StorageIndex /*s*/) {}
    /// The program's next op makes or writes `s`, or views it: its compute has grown.
    virtual void announced(core::StorageIndex /*s*/) {}
    /// state.links.add(input, output) has just been called for that op.
    virtual void linked(core::StorageIndex /*input*/, core::StorageIndex /*output*/) {}
    /// An op has made these storages resident, for the first time or again.
    virtual void materialized(const std::vector<core::StorageIndex>& /*made*/) {}
    virtual void evicted(core::StorageIndex /*s*/) {}
    /// `s` has been freed for good; its `gone` is set.
    virtual void banished(core::StorageIndex /*s*/) {}

    /// The storage to evict next, EvictionPool::end() when the pool is empty: the lowest score, the
    /// last among equals; the search ends at a score of 0. Counts evaluations and accesses.
    virtual core::StorageIndex choose(const EvictionPool& pool);
    /// The same among some that are drawn, as many as the square root of the pool's size, 32 at
    /// least, without those of less than 1 % of the average size: the approximations of the paper's
    /// prototype (section 5). `bytes`: of the pool. Deterministic.
    core::StorageIndex chooseAmongSome(const EvictionPool& pool, std::int64_t bytes);

protected:
    /// Of a storage that would take so long to have again (ns): dtrScore() of its size and
    /// staleness.
    double scoreOf(core::StorageIndex s, std::int64_t compute) const;
    virtual double score(core::StorageIndex s) = 0;
    /// No more than its score, and quicker to have.
    virtual double leastScore(core::StorageIndex /*s*/) {
        return -std::numeric_limits<double>::infinity();
    }

    DtrState& state_;

private:
    void draw(const EvictionPool& pool, std::size_t draws);
    core::StorageIndex lowestDrawn(std::int64_t count, std::int64_t bytes);

    std::mt19937_64 draw_;
    std::vector<core::StorageIndex> drawn_;  // by draw()
};

struct HeuristicOptions {
    /// The simulator gives a storage its class before it is first computed, and takes its compute
    /// out of the class afterwards, where it never was: classes shrink, and what a long evicted
    /// chain leads up to looks cheap. Recorded sessions do without.
    bool simulated = false;
    bool cacheRegions = true;  // full, msps: keep neighbourhoods between scores
    std::uint64_t seed = 0;    // random
    bool some = false;         // look at some storages only, see chooseAmongSome()
    /// In a pool of so many, not all are looked at (tournament.h, blockwise.h): fewer accesses.
    std::size_t largePool = 256;
};

/// `state` must outlive the heuristic and already hold its storages.
std::unique_ptr<EvictionHeuristic> makeHeuristic(DtrHeuristic kind, DtrState& state,
                                                 const HeuristicOptions& options);

}  // namespace hw::planners

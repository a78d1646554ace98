// SPDX-License-Identifier: MIT
#include "planners/dtr/heuristics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "planners/dtr/entry_ranks.h"
#include "planners/dtr/eqclass.h"
#include "planners/dtr/regions.h"
#include "planners/dtr/score.h"
#include "planners/dtr/tournament.h"

namespace hw::planners {
namespace {

using namespace hw::core;

class Local final : public TournamentHeuristic {
    using TournamentHeuristic::TournamentHeuristic;
    double score(StorageIndex s) override { return scoreOf(s, state_.storages[s].compute); }
    Line lineOf(StorageIndex s) const override {
        constexpr double kFree = 1e280;  // overflows with no clock
        const DtrStorage& storage = state_.storages[s];
        const auto size = static_cast<double>(storage.size);
        const bool free = storage.compute <= 0 && storage.size > 0;
        return {
            free ? kFree : size / static_cast<double>(std::max<std::int64_t>(storage.compute, 1)),
            storage.lastAccess};
    }
};

// 1 / staleness orders storages as their last access does.
class Lru final : public TournamentHeuristic {
    using TournamentHeuristic::TournamentHeuristic;
    double score(StorageIndex s) override {
        return static_cast<double>(state_.storages[s].lastAccess);
    }
    Line lineOf(StorageIndex s) const override { return {1, state_.storages[s].lastAccess}; }
};

class Largest final : public TournamentHeuristic {
    using TournamentHeuristic::TournamentHeuristic;
    double score(StorageIndex s) override {
        return 1.0 / static_cast<double>(state_.storages[s].size);  // infinite for an empty one
    }
    Line lineOf(StorageIndex s) const override {
        return {static_cast<double>(state_.storages[s].size), 0};
    }
    std::int64_t now() const override { return 1; }
};

class Random final : public EvictionHeuristic {
public:
    Random(DtrState& state, const HeuristicOptions& options)
        : EvictionHeuristic(state), generator_(options.seed), largePool_(options.largePool) {
        ranks_.resize(state.storages.size());
    }

    void resize(std::size_t storages) override { ranks_.resize(storages); }
    void entered(StorageIndex s) override { ranks_.enter(s); }
    void left(StorageIndex s) override { ranks_.leave(s); }
    StorageIndex choose(const EvictionPool& pool) override {
        if (pool.size() == 0) return EvictionPool::end();
        ++state_.evals;
        ++state_.accesses;
        // A scaled draw instead of a standard distribution: the same on every platform.
        const std::uint64_t draw = ((generator_() >> 32) * pool.size()) >> 32;
        if (pool.size() >= largePool_) return ranks_[draw];
        StorageIndex s = pool.first();
        for (std::uint64_t i = 0; i < draw; ++i) s = pool.next(s);
        return s;
    }

private:
    double score(StorageIndex /*s*/) override { return 0; }
    std::mt19937_64 generator_;
    EntryRanks ranks_;
    const std::size_t largePool_;
};

}  // namespace

double EvictionHeuristic::scoreOf(StorageIndex s, std::int64_t compute) const {
    const DtrStorage& storage = state_.storages[s];
    return dtrScore(compute, storage.size, state_.clock - storage.lastAccess);
}

StorageIndex EvictionHeuristic::choose(const EvictionPool& pool) {
    double best = std::numeric_limits<double>::infinity();
    StorageIndex chosen = EvictionPool::end();
    for (StorageIndex s = pool.first(); s != EvictionPool::end(); s = pool.next(s)) {
        ++state_.evals;
        ++state_.accesses;
        const double cost = score(s);
        if (cost <= best) best = cost, chosen = s;
        if (cost == 0) break;
    }
    return chosen;
}

StorageIndex EvictionHeuristic::chooseAmongSome(const EvictionPool& pool, std::int64_t bytes) {
    constexpr std::size_t kAtLeast = 32, kPerhaps = 4;
    if (pool.size() == 0) return EvictionPool::end();
    const auto root = static_cast<std::size_t>(std::sqrt(static_cast<double>(pool.size())));
    const std::size_t draws = std::max(kAtLeast, root);
    const auto count = static_cast<std::int64_t>(pool.size());
    // Among many small ones the few large ones take the more draws the more they give.
    for (std::size_t drawn = 0; drawn <= kPerhaps * pool.size(); drawn += draws) {
        draw(pool, draws);
        if (const StorageIndex s = lowestDrawn(count, bytes); s != EvictionPool::end()) return s;
    }
    return choose(pool);
}

/// All of them, where there are no more than that.
void EvictionHeuristic::draw(const EvictionPool& pool, std::size_t draws) {
    const bool all = pool.size() <= draws;
    drawn_.clear();
    for (std::size_t i = 0; i < (all ? pool.size() : draws); ++i) {
        const StorageIndex s = pool[all ? i : ((draw_() >> 32) * pool.size()) >> 32];
        drawn_.push_back(s);
        __builtin_prefetch(&state_.storages[s]);  // they lie anywhere
        state_.links.prefetch(s);
    }
}

/// Of those that were drawn from a pool of so many storages and bytes; none: all are too small.
StorageIndex EvictionHeuristic::lowestDrawn(std::int64_t count, std::int64_t bytes) {
    constexpr std::int64_t kSmall = 100;  // so many times smaller than the average is too small
    double best = std::numeric_limits<double>::infinity();
    StorageIndex chosen = EvictionPool::end();
    for (const StorageIndex s : drawn_) {
        if (state_.storages[s].size * count * kSmall < bytes || leastScore(s) > best) continue;
        ++state_.evals;
        ++state_.accesses;
        const double cost = score(s);
        if (cost <= best) best = cost, chosen = s;
    }
    return chosen;
}

std::unique_ptr<EvictionHeuristic> makeHeuristic(DtrHeuristic kind, DtrState& state,
                                                 const HeuristicOptions& options) {
    switch (kind) {
        case DtrHeuristic::Full:
        case DtrHeuristic::Msps:
        case DtrHeuristic::Neighbourhood:
            return std::make_unique<RegionHeuristic>(state, kind, options.cacheRegions);
        case DtrHeuristic::EqClass:
            return std::make_unique<EqClassHeuristic>(state, options);
        case DtrHeuristic::Local:
            return std::make_unique<Local>(state, options);
        case DtrHeuristic::Lru:
            return std::make_unique<Lru>(state, options);
        case DtrHeuristic::Largest:
            return std::make_unique<Largest>(state, options);
        case DtrHeuristic::Random:
            return std::make_unique<Random>(state, options);
    }
    return nullptr;
}

}  // namespace hw::planners

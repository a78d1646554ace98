// SPDX-License-Identifier: MIT
#include "planners/dtr/heuristics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "planners/dtr/blockwise.h"
#include "planners/dtr/eqclass.h"
#include "planners/dtr/regions.h"
#include "planners/dtr/score.h"

namespace hw::planners {
namespace {

using namespace hw::core;

class Local final : public ComputeHeuristic {
    using ComputeHeuristic::ComputeHeuristic;
    std::int64_t computeOf(StorageIndex s) override { return state_.storages[s].compute; }
};

// 1 / staleness orders storages as their last access does.
class Lru final : public RisingHeuristic {
    using RisingHeuristic::RisingHeuristic;
    double score(StorageIndex s) override {
        return static_cast<double>(state_.storages[s].lastAccess);
    }
};

class Largest final : public RisingHeuristic {
    using RisingHeuristic::RisingHeuristic;
    double score(StorageIndex s) override {
        return 1.0 / static_cast<double>(state_.storages[s].size);  // infinite for an empty one
    }
};

class Random final : public EvictionHeuristic {
public:
    Random(DtrState& state, std::uint64_t seed) : EvictionHeuristic(state), generator_(seed) {}

    StorageIndex choose(const EvictionPool& pool) override {
        if (pool.size() == 0) return EvictionPool::end();
        ++state_.evals;
        ++state_.accesses;
        // A scaled draw instead of a standard distribution: the same on every platform.
        const std::uint64_t draw = ((generator_() >> 32) * pool.size()) >> 32;
        StorageIndex s = pool.first();
        for (std::uint64_t i = 0; i < draw; ++i) s = pool.next(s);
        return s;
    }

private:
    double score(StorageIndex /*s*/) override { return 0; }
    std::mt19937_64 generator_;
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
    constexpr std::size_t kAtLeast = 32;
    constexpr std::int64_t kSmall = 100;  // so many times smaller than the average is too small
    const auto root = static_cast<std::size_t>(std::sqrt(static_cast<double>(pool.size())));
    const std::size_t draws = std::max(kAtLeast, root);
    const bool all = pool.size() <= draws;
    const auto count = static_cast<std::int64_t>(pool.size());
    drawn_.clear();
    for (std::size_t i = 0; i < (all ? pool.size() : draws); ++i) {
        const StorageIndex s = pool[all ? i : ((draw_() >> 32) * pool.size()) >> 32];
        drawn_.push_back(s);
        __builtin_prefetch(&state_.storages[s]);  // they lie anywhere
        state_.links.prefetch(s);
    }
    double best = std::numeric_limits<double>::infinity();
    StorageIndex chosen = EvictionPool::end();
    for (const StorageIndex s : drawn_) {
        if (state_.storages[s].size * count * kSmall < bytes || leastScore(s) > best) continue;
        ++state_.evals;
        ++state_.accesses;
        const double cost = score(s);
        if (cost <= best) best = cost, chosen = s;
    }
    return chosen != EvictionPool::end() ? chosen : choose(pool);
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
            return std::make_unique<Random>(state, options.seed);
    }
    return nullptr;
}

}  // namespace hw::planners

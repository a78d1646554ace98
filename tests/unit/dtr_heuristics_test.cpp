// SPDX-License-Identifier: MIT
// DTR's scores and the metadata behind them, on hand-made pools.
#include "planners/dtr/heuristics.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <set>

#include "planners/dtr/evicted_neighborhood.h"
#include "planners/dtr/score.h"

namespace hw::planners {
namespace {

using namespace hw::core;

TEST(DtrScore, DividesOnceAndRoundsToTheNearest) {
    EXPECT_EQ(dtrScore(1, 3, 1), 1.0 / 3.0);
    // Integers divided with one rounding, worked out with exact rational arithmetic.
    EXPECT_EQ(dtrScore(291905487, 33554432, 123456789), 0x1.2ea5c9e0f79c4p-24);
    EXPECT_EQ(dtrScore(618363, 9007199254740993, 3), 0x1.92947ffffffffp-36);
    EXPECT_EQ(dtrScore(987654321987, 20971520000, 291905487), 0x1.5a77b6ab238ddp-23);
    EXPECT_EQ(dtrScore(-12345, 671088640, 299999999), -0x1.1427297419da9p-44);
    EXPECT_EQ(dtrScore(0, 5, 5), 0.0);
    EXPECT_EQ(dtrScore(5, 0, 5), std::numeric_limits<double>::infinity());
    EXPECT_EQ(dtrScore(5, 5, 0), std::numeric_limits<double>::infinity());
}

TEST(StorageSet, UnitesLikeAnyOtherSet) {
    std::mt19937 random(1);
    for (int round = 0; round < 200; ++round) {
        StorageSet a, b;
        std::set<StorageIndex> plainA, plainB;
        for (int i = 0; i < 60; ++i) {
            const auto x = static_cast<StorageIndex>(random() % 700);
            const auto y = static_cast<StorageIndex>(random() % 700);
            EXPECT_EQ(a.insert(x), plainA.insert(x).second);
            EXPECT_EQ(b.insert(y), plainB.insert(y).second);
        }
        a.erase(*plainA.begin());
        plainA.erase(plainA.begin());
        std::set<StorageIndex> added, fresh, all = plainA;
        for (const StorageIndex s : plainB)
            if (all.insert(s).second) fresh.insert(s);
        a.unite(b, [&](StorageIndex s) { EXPECT_TRUE(added.insert(s).second); });
        EXPECT_EQ(added, fresh);
        std::set<StorageIndex> united;
        a.forEach([&](StorageIndex s) { united.insert(s); });
        EXPECT_EQ(united, all);
        for (StorageIndex s = 0; s < 700; ++s) EXPECT_EQ(a.contains(s), all.contains(s));
    }
}

std::set<StorageIndex> membersOf(const StorageSet& set) {
    std::set<StorageIndex> members;
    set.forEach([&](StorageIndex s) { members.insert(s); });
    return members;
}

// Joint walks must give what single ones give, accesses too; links backwards make cycles.
TEST(EvictedNeighborhood, TogetherIsOneByOne) {
    std::mt19937 random(2);
    constexpr int kStorages = 400;
    for (int round = 0; round < 60; ++round) {
        DtrState state(kStorages);
        EvictedNeighborhood neighborhood(state);
        std::vector<StorageIndex> bases;
        for (StorageIndex s = 0; s < kStorages; ++s) {
            state.storages[s].compute = static_cast<std::int64_t>(random() % 1000);
            for (int k = 0; k < 2 && s > 0; ++k) {
                const auto input = static_cast<StorageIndex>(random() % static_cast<unsigned>(s));
                state.links.add(input, s);
                if (random() % 20 == 0) state.links.add(s, input);
            }
            if (random() % 4 != 0) continue;
            neighborhood.nowResident(s);
            bases.push_back(s);
        }
        for (const Direction direction : {Descendants, Ancestors}) {
            std::vector<Region> single(kStorages), joint(kStorages);
            state.accesses = 0;
            for (const StorageIndex base : bases)
                neighborhood.rebuild({&base, 1}, direction, single);
            const std::int64_t accesses = std::exchange(state.accesses, 0);
            neighborhood.rebuild(bases, direction, joint);
            EXPECT_EQ(state.accesses, accesses);
            for (const StorageIndex base : bases) {
                EXPECT_EQ(membersOf(joint[base].interior), membersOf(single[base].interior));
                EXPECT_EQ(membersOf(joint[base].frontier), membersOf(single[base].frontier));
                EXPECT_EQ(joint[base].compute, single[base].compute);
            }
        }
    }
}

// Storages 0 -> 1 -> 2 -> 3 and 4 apart; 2 is evicted, the clock stands at 101.
//   storage     0    1    2    3    4
//   bytes      10   10   10   40   20
//   compute     4    6   50   30   12
//   last use    1   91    -   81   51
class HandMadePool : public testing::Test {
protected:
    HandMadePool() {
        state_.clock = 101;
        const std::int64_t sizes[] = {10, 10, 10, 40, 20}, computes[] = {4, 6, 50, 30, 12},
                           uses[] = {1, 91, 71, 81, 51};
        for (StorageIndex s = 0; s < 5; ++s) {
            state_.storages[s].size = sizes[s];
            state_.storages[s].compute = computes[s];
            state_.storages[s].lastAccess = uses[s];
        }
        for (StorageIndex s = 0; s < 3; ++s) state_.links.add(s, s + 1);
    }

    StorageIndex choiceOf(DtrHeuristic kind, bool cache = true) {
        state_.evals = state_.accesses = 0;
        EvictionPool pool(5);
        auto heuristic = makeHeuristic(kind, state_, {false, cache, 7});
        for (StorageIndex s = 0; s < 5; ++s) {
            state_.storages[s].material = state_.storages[s].everMaterial = true;
            heuristic->materialized({s});
            pool.add(s);
        }
        pool.remove(2);
        state_.storages[2].material = false;
        heuristic->evicted(2);
        return heuristic->choose(pool);
    }

    DtrState state_{5};
};

TEST_F(HandMadePool, EachHeuristicHasItsOwnVictim) {
    // c / (m s): 4/1000, 6/100, 30/800, 12/1000
    EXPECT_EQ(choiceOf(DtrHeuristic::Local), 0);
    EXPECT_EQ(choiceOf(DtrHeuristic::Lru), 0);
    EXPECT_EQ(choiceOf(DtrHeuristic::Largest), 3);
    // (c + evicted ancestors) / m: .4, .6, 80/40, .6
    EXPECT_EQ(choiceOf(DtrHeuristic::Msps), 0);
    // (c + evicted neighbourhood) / (m s): 4/1000, 56/100, 80/800, 12/1000
    EXPECT_EQ(choiceOf(DtrHeuristic::Full), 0);
    EXPECT_EQ(choiceOf(DtrHeuristic::EqClass), 0);
}

TEST_F(HandMadePool, NeighbourhoodsCountForTheirNeighbours) {
    // Storage 0 is just used and 4 dear: 1, 3 and their evicted neighbour decide.
    state_.storages[0].lastAccess = 100;
    state_.storages[4].compute = 1000;
    // local: 4/10, 6/100, 30/800, 1000/1000
    EXPECT_EQ(choiceOf(DtrHeuristic::Local), 3);
    // full: 4/10, 56/100, 80/800, 1
    EXPECT_EQ(choiceOf(DtrHeuristic::Full), 3);
    state_.storages[2].compute = 1000;  // full: 4/10, 1006/100, 1030/800, 1
    EXPECT_EQ(choiceOf(DtrHeuristic::Full), 0);
    EXPECT_EQ(choiceOf(DtrHeuristic::Full, false), 0);
    EXPECT_EQ(choiceOf(DtrHeuristic::EqClass), 0);
    EXPECT_EQ(choiceOf(DtrHeuristic::Local), 3);
    // msps: 4/10, 6/10 (2 is no ancestor of 1), 1030/40, 1000/20
    state_.storages[0].compute = 7;
    EXPECT_EQ(choiceOf(DtrHeuristic::Msps), 1);
}

TEST_F(HandMadePool, TheLastOfEqualsWinsAndZeroEndsTheSearch) {
    for (DtrStorage& storage : state_.storages) storage.lastAccess = 1;
    EXPECT_EQ(choiceOf(DtrHeuristic::Lru), 4);
    EXPECT_EQ(state_.evals, 4);
    state_.storages[1].compute = 0;
    EXPECT_EQ(choiceOf(DtrHeuristic::Local), 1);
    EXPECT_EQ(state_.evals, 2);
}

TEST_F(HandMadePool, RandomTakesAnyOfThem) {
    EvictionPool pool(5);
    for (const StorageIndex s : {0, 3, 4}) pool.add(s);
    auto heuristic = makeHeuristic(DtrHeuristic::Random, state_, {false, true, 3});
    std::set<StorageIndex> chosen;
    for (int i = 0; i < 100; ++i) chosen.insert(heuristic->choose(pool));
    EXPECT_EQ(chosen, (std::set<StorageIndex>{0, 3, 4}));
    EXPECT_EQ(state_.evals, 100);
    EXPECT_EQ(makeHeuristic(DtrHeuristic::Random, state_, {})->choose(EvictionPool(5)),
              EvictionPool::end());
}

// Of many, some are drawn: the same ones each time, without those that are not worth it.
TEST(ManyInAPool, SomeAreLookedAt) {
    constexpr StorageIndex kStorages = 1000, kTiny = 500;
    DtrState state(kStorages);
    EvictionPool pool(kStorages);
    std::int64_t bytes = 0;
    for (StorageIndex s = 0; s < kStorages; ++s) {
        state.storages[s].size = s == kTiny ? 1 : 1000 + s;
        state.storages[s].compute = s == kTiny ? 0 : s;  // the tiny one would be the cheapest
        bytes += state.storages[s].size;
        pool.add(s);
    }
    state.clock = 100;
    auto one = makeHeuristic(DtrHeuristic::Local, state, {});
    auto other = makeHeuristic(DtrHeuristic::Local, state, {});
    std::set<StorageIndex> chosen;
    for (int i = 0; i < 50; ++i) {
        const std::int64_t before = state.evals;
        const StorageIndex s = one->chooseAmongSome(pool, bytes);
        EXPECT_LE(state.evals - before, 32);
        EXPECT_EQ(other->chooseAmongSome(pool, bytes), s);
        EXPECT_NE(s, kTiny);
        EXPECT_LT(s, kStorages / 2);  // the cheapest of 32
        chosen.insert(s);
    }
    EXPECT_GT(chosen.size(), 5U);
    EvictionPool tiny(kStorages);
    tiny.add(kTiny);
    EXPECT_EQ(one->chooseAmongSome(tiny, bytes), kTiny);  // there is no other
}

// A large pool, most of which is passed over, against all of it, through whatever can happen to a
// program's storages.
TEST(ManyInAPool, WhatIsPassedOverWouldNotHaveBeenChosen) {
    constexpr StorageIndex kStorages = 10000;  // some groups of blocks
    constexpr std::size_t kFull = 2000;
    for (const auto& [kind, simulated] :
         {std::pair(DtrHeuristic::EqClass, false), std::pair(DtrHeuristic::EqClass, true),
          std::pair(DtrHeuristic::Local, false), std::pair(DtrHeuristic::Lru, false),
          std::pair(DtrHeuristic::Largest, false), std::pair(DtrHeuristic::Random, false)}) {
        SCOPED_TRACE(static_cast<int>(kind));
        std::mt19937 random(simulated ? 5 : 6);
        DtrState state(kStorages);
        EvictionPool pool(kStorages);
        HeuristicOptions byBlocks{simulated}, everyOne{simulated};
        byBlocks.largePool = kFull;
        everyOne.largePool = kStorages;
        const auto passing = makeHeuristic(kind, state, byBlocks);
        const auto plain = makeHeuristic(kind, state, everyOne);
        const auto tell = [&](auto what) { what(*passing), what(*plain); };
        std::vector<StorageIndex> evicted;
        const auto add = [&](StorageIndex s) {
            state.storages[s].material = state.storages[s].everMaterial = true;
            state.storages[s].lastAccess = state.clock;
            pool.add(s);
            tell([&](EvictionHeuristic& each) { each.entered(s), each.materialized({s}); });
        };
        const auto remove = [&](StorageIndex s) {
            state.storages[s].material = false;
            pool.remove(s);
            tell([&](EvictionHeuristic& each) { each.left(s); });
        };
        std::int64_t choices = 0, looked = 0, lookedOfAll = 0, scale = 1;
        for (StorageIndex s = 0; s < kStorages; ++s) {
            // Few different figures, so that scores are equal now and then; some chains are dear.
            const StorageIndex chain = s < kStorages / 2 ? 40 : 700;  // classes small and large
            if (s % 40 == 0) scale = std::int64_t{1} << random() % 12;
            state.storages[s].size = 1000 * (1 + random() % 4);
            state.storages[s].compute = scale * (1 + random() % 3);
            tell([&](EvictionHeuristic& each) { each.announced(s); });
            for (StorageIndex k = 1; k <= std::min(s % chain, 2); ++k) {
                const StorageIndex input = s - k;
                state.links.add(input, s);
                tell([&](EvictionHeuristic& each) { each.linked(input, s); });
            }
            state.clock += random() % 3;
            add(s);
            for (int k = 0; k < 3; ++k) state.storages[random() % (s + 1)].lastAccess = state.clock;
            while (pool.size() > kFull) {
                state.evals = state.accesses = 0;
                const StorageIndex chosen = passing->choose(pool);
                const std::int64_t counted = std::exchange(state.evals, 0);
                looked += std::exchange(state.accesses, 0);
                ASSERT_EQ(chosen, plain->choose(pool)) << s << (simulated ? " simulated" : "");
                EXPECT_EQ(counted, state.evals);
                lookedOfAll += state.accesses;
                ++choices;
                remove(chosen);
                if (random() % 50 == 0) {
                    state.storages[chosen].gone = true;
                    tell([&](EvictionHeuristic& each) { each.banished(chosen); });
                    continue;
                }
                tell([&](EvictionHeuristic& each) { each.evicted(chosen); });
                evicted.push_back(chosen);
                if (random() % 2 != 0) continue;
                const std::size_t back = random() % evicted.size();
                add(std::exchange(evicted[back], evicted.back()));
                evicted.pop_back();
            }
        }
        EXPECT_GT(choices, 2000);
        if (kind != DtrHeuristic::Random) {
            EXPECT_LT(looked, lookedOfAll);
        }
    }
}

}  // namespace
}  // namespace hw::planners

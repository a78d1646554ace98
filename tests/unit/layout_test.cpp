// SPDX-License-Identifier: MIT
#include "core/memory/layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "core/import/allocation_csv.h"
#include "core/memory/pack_in_time.h"
#include "core/memory/pack_search.h"
#include "tests/unit/test_data.h"

using namespace hw::core;

namespace {

void expectValid(const std::vector<Block>& blocks, const Packing& packing, std::int64_t alignment) {
    ASSERT_EQ(packing.offsets.size(), blocks.size());
    Bytes top;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        EXPECT_GE(packing.offsets[i], Bytes(0));
        EXPECT_EQ(packing.offsets[i].count() % alignment, 0);
        top = std::max(top, packing.offsets[i] + blocks[i].size);
        for (std::size_t j = 0; j < i; ++j) {
            const bool overlap = packing.offsets[i] < packing.offsets[j] + blocks[j].size &&
                                 packing.offsets[j] < packing.offsets[i] + blocks[i].size;
            EXPECT_FALSE(blocks[i].livesWith(blocks[j]) && overlap)
                << "blocks " << j << " and " << i;
        }
    }
    EXPECT_EQ(packing.arena, top);
    EXPECT_GE(packing.arena, packing.lowerBound);
    EXPECT_EQ(packing.optimal, packing.arena == packing.lowerBound);
}

std::vector<Block> randomBlocks(unsigned seed, int count, int times, int life, int size) {
    std::mt19937 random(seed);
    std::vector<Block> blocks;
    for (int i = 0; i < count; ++i) {
        const std::int64_t begin = random() % static_cast<unsigned>(times);
        const std::int64_t end = begin + 1 + random() % static_cast<unsigned>(life);
        blocks.push_back({begin, end, Bytes(1 + random() % static_cast<unsigned>(size))});
    }
    return blocks;
}

// The smallest arena, from every order of placement: each packing in which blocks rest on the floor
// or on each other comes from placing its blocks by offset, each on top of what it meets.
Bytes smallestArena(const std::vector<Block>& blocks, std::int64_t alignment) {
    std::vector<std::size_t> order(blocks.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::int64_t best = INT64_MAX;
    std::vector<std::int64_t> ends(blocks.size());
    do {
        std::int64_t arena = 0;
        for (std::size_t k = 0; k < order.size(); ++k) {
            std::int64_t offset = 0;
            for (std::size_t l = 0; l < k; ++l)
                if (blocks[order[k]].livesWith(blocks[order[l]]))
                    offset = std::max(offset, ends[order[l]]);
            offset = (offset + alignment - 1) / alignment * alignment;
            ends[order[k]] = offset + blocks[order[k]].size.count();
            arena = std::max(arena, ends[order[k]]);
        }
        best = std::min(best, arena);
    } while (std::next_permutation(order.begin(), order.end()));
    return Bytes(best);
}

// A rectangle cut into pieces: they fit into its height without any slack.
std::vector<Block> dissection(unsigned seed, int cuts, std::int64_t height) {
    std::mt19937 random(seed);
    struct Piece {
        std::int64_t begin, end, low, high;
    };
    std::vector<Piece> pieces{{0, 1000, 0, height}};
    while (static_cast<int>(pieces.size()) < cuts) {
        const std::size_t k = random() % pieces.size();
        const Piece piece = pieces[k];
        const std::int64_t life = piece.end - piece.begin, size = piece.high - piece.low;
        if (random() % 2 == 0 && life > 1) {
            const std::int64_t at =
                piece.begin + 1 + static_cast<std::int64_t>(random()) % (life - 1);
            pieces[k].end = at;
            pieces.push_back({at, piece.end, piece.low, piece.high});
        } else if (size > 1) {
            const std::int64_t at =
                piece.low + 1 + static_cast<std::int64_t>(random()) % (size - 1);
            pieces[k].high = at;
            pieces.push_back({piece.begin, piece.end, at, piece.high});
        }
    }
    std::vector<Block> blocks;
    for (const Piece& piece : pieces)
        blocks.push_back({piece.begin, piece.end, Bytes(piece.high - piece.low)});
    std::shuffle(blocks.begin(), blocks.end(), random);
    return blocks;
}

PackOptions optionsWith(std::int64_t alignment, std::int64_t work) {
    PackOptions options;
    options.alignment = Bytes(alignment);
    options.workLimit = work;
    return options;
}

}  // namespace

TEST(Layout, NothingNeedsNothing) {
    const Packing packing = packBlocks({}, Bytes(64));
    EXPECT_EQ(packing.arena, Bytes(0));
    EXPECT_EQ(packing.lowerBound, Bytes(0));
    EXPECT_TRUE(packing.optimal);
}

TEST(Layout, BlocksThatFollowEachOtherShareTheirPlace) {
    const std::vector<Block> blocks{{0, 2, Bytes(100)}, {2, 4, Bytes(100)}, {4, 5, Bytes(70)}};
    const Packing packing = packBlocks(blocks, Bytes(64));
    expectValid(blocks, packing, 64);
    EXPECT_EQ(packing.arena, Bytes(100));
    EXPECT_EQ(packing.lowerBound, Bytes(100));
}

TEST(Layout, BlocksThatMeetAreAligned) {
    const std::vector<Block> blocks{{0, 2, Bytes(1)}, {1, 3, Bytes(1)}};
    const Packing packing = packBlocks(blocks, Bytes(64));
    expectValid(blocks, packing, 64);
    EXPECT_EQ(packing.arena, Bytes(65));
    EXPECT_EQ(packing.lowerBound, Bytes(65));  // the lower one is padded
    EXPECT_EQ(highestLoad(blocks), Bytes(2));
}

TEST(Layout, AGapBelowALongLivedBlockIsUsed) {
    const std::vector<Block> blocks{
        {0, 10, Bytes(64)}, {0, 4, Bytes(128)}, {4, 10, Bytes(128)}, {2, 6, Bytes(64)}};
    const Packing packing = packBlocks(blocks, Bytes(64));
    expectValid(blocks, packing, 64);
    EXPECT_EQ(packing.arena, Bytes(256));
}

TEST(Layout, EmptyBlocksTakeNoSpace) {
    const std::vector<Block> blocks{
        {0, 5, Bytes(0)}, {0, 5, Bytes(64)}, {0, 5, Bytes(0)}, {3, 3, Bytes(64)}};
    EXPECT_EQ(packBlocks(blocks, Bytes(64)).arena, Bytes(64));
}

TEST(Layout, RandomBlocksNeverOverlapAndStayNearTheBound) {
    for (unsigned seed = 0; seed < 20; ++seed) {
        const std::vector<Block> blocks = randomBlocks(seed, 300, 500, 60, 5000);
        const PackOptions options = optionsWith(64, 1'000'000);
        const Packing packing = packBlocks(blocks, options);
        expectValid(blocks, packing, 64);
        EXPECT_LT(ratio(packing.arena, packing.lowerBound), 1.1);
        EXPECT_EQ(packBlocks(blocks, options).offsets, packing.offsets);
    }
}

TEST(Layout, TinyProblemsAreSolvedToTheOptimum) {
    for (unsigned seed = 0; seed < 150; ++seed)
        for (const std::int64_t alignment : {1, 4}) {
            const std::vector<Block> blocks = randomBlocks(seed, 7, 8, 5, 12);
            const Packing packing = packBlocks(blocks, optionsWith(alignment, 10'000'000));
            expectValid(blocks, packing, alignment);
            EXPECT_EQ(packing.arena, smallestArena(blocks, alignment)) << seed;
            EXPECT_TRUE(packing.optimal) << seed;  // the search raised the bound to it
        }
}

TEST(Layout, ACapacityThatCannotBeMetIsProven) {
    // No more than 8 live at once, and yet no packing is lower than 9.
    const std::vector<Block> blocks{{3, 4, Bytes(2)}, {0, 4, Bytes(2)}, {5, 7, Bytes(3)},
                                    {2, 6, Bytes(2)}, {0, 2, Bytes(3)}, {1, 5, Bytes(2)},
                                    {0, 1, Bytes(3)}, {4, 6, Bytes(3)}};
    ASSERT_EQ(highestLoad(blocks), Bytes(8));
    ASSERT_EQ(smallestArena(blocks, 1), Bytes(9));
    PackOptions options = optionsWith(1, 10'000'000);
    const Packing best = packBlocks(blocks, options);
    expectValid(blocks, best, 1);
    EXPECT_EQ(best.arena, Bytes(9));
    EXPECT_TRUE(best.optimal);
    options.capacity = Bytes(8);
    EXPECT_EQ(packBlocks(blocks, options).lowerBound, Bytes(9));
    options.workLimit = 0;  // no search, no proof
    EXPECT_EQ(packBlocks(blocks, options).lowerBound, Bytes(8));
}

TEST(Layout, DissectedRectanglesFitWithoutSlack) {
    for (unsigned seed = 0; seed < 8; ++seed) {
        const std::vector<Block> blocks = dissection(seed, 60, 4096);
        PackOptions options = optionsWith(1, 100'000'000);
        options.capacity = Bytes(4096);
        const Packing packing = packBlocks(blocks, options);
        expectValid(blocks, packing, 1);
        EXPECT_EQ(packing.arena, Bytes(4096)) << seed;
    }
}

TEST(Layout, ManyBlocksStayNearTheBound) {
    const std::vector<Block> blocks = randomBlocks(1, 6000, 9000, 100, 100000);
    const Packing packing = packBlocks(blocks, optionsWith(64, 1'000'000));
    EXPECT_LT(ratio(packing.arena, packing.lowerBound), 1.1);
    EXPECT_GE(packing.arena, highestLoad(blocks));
}

TEST(Layout, InTheOrderOfTimeNothingOverlaps) {
    for (unsigned seed = 0; seed < 20; ++seed) {
        const std::vector<Block> blocks = randomBlocks(seed, 1500, 2000, 300, 100000);
        const PackingProblem problem(blocks, 64);
        const GreedyPacking made = packInTime(problem);
        Packing packing;
        packing.arena = Bytes(made.arena);
        packing.lowerBound = Bytes(problem.lowerBound);
        packing.offsets.assign(blocks.size(), Bytes(0));
        for (std::size_t i = 0; i < problem.items.size(); ++i)
            packing.offsets[problem.items[i].block] = Bytes(made.offsets[i] * problem.unit);
        expectValid(blocks, packing, 64);
        EXPECT_LT(ratio(packing.arena, packing.lowerBound), 1.5);
    }
}

// Of a step of hundreds of thousands of ops: what a layer saves stays until its backward pass.
TEST(Layout, ALargeStepIsPackedAsItsAllocatorWould) {
    std::vector<Block> blocks;
    constexpr std::int64_t kLayers = 100'000;
    std::mt19937 random(4);
    for (std::int64_t i = 0; i < kLayers; ++i) {
        blocks.push_back({i, 2 * kLayers - i, Bytes(4096 * (1 + random() % 3))});
        blocks.push_back({i, i + 2, Bytes(4096 * (1 + random() % 8))});
    }
    const Packing packing = packBlocks(blocks, Bytes(64));
    EXPECT_LT(ratio(packing.arena, packing.lowerBound), 1.01);
    EXPECT_EQ(packing.lowerBound, highestLoad(blocks));
}

TEST(Layout, ACancelledSearchStillPacks) {
    const std::vector<Block> blocks = dissection(3, 80, 4096);
    PackOptions options;
    options.alignment = Bytes(1);
    options.cancelled = [] { return true; };
    expectValid(blocks, packBlocks(blocks, options), 1);
}

TEST(Layout, TheHardProblemsFit) {
    for (const std::string& file :
         hw::test::dataFiles({"minimalloc/A.1048576.csv", "minimalloc/B.1048576.csv",
                              "minimalloc/C.1048576.csv", "minimalloc/D.1048576.csv",
                              "minimalloc/E.1048576.csv", "minimalloc/F.1048576.csv"})) {
        const auto problem = readAllocationCsv(file);
        ASSERT_TRUE(problem) << problem.error().what;
        PackOptions options = optionsWith(1, 400'000'000);
        options.capacity = Bytes(1048576);
        const Packing packing = packBlocks(problem->blocks, options);
        expectValid(problem->blocks, packing, 1);
        EXPECT_LE(packing.arena, Bytes(1048576)) << file;
    }
}

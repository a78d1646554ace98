// SPDX-License-Identifier: MIT
#include "core/memory/layout.h"

#include <gtest/gtest.h>

#include <random>

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
            const bool together =
                blocks[i].begin < blocks[j].end && blocks[j].begin < blocks[i].end;
            const bool overlap = packing.offsets[i] < packing.offsets[j] + blocks[j].size &&
                                 packing.offsets[j] < packing.offsets[i] + blocks[i].size;
            EXPECT_FALSE(together && overlap) << "blocks " << j << " and " << i;
        }
    }
    EXPECT_EQ(packing.arena, top);
    EXPECT_GE(packing.arena, packing.lowerBound);
}

}  // namespace

TEST(Layout, NothingNeedsNothing) {
    const Packing packing = packBlocks({}, Bytes(64));
    EXPECT_EQ(packing.arena, Bytes(0));
    EXPECT_EQ(packing.lowerBound, Bytes(0));
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
    EXPECT_TRUE(packing.optimal);
}

TEST(Layout, AGapBelowALongLivedBlockIsUsed) {
    const std::vector<Block> blocks{
        {0, 10, Bytes(64)}, {0, 4, Bytes(128)}, {4, 10, Bytes(128)}, {2, 6, Bytes(64)}};
    const Packing packing = packBlocks(blocks, Bytes(64));
    expectValid(blocks, packing, 64);
    EXPECT_EQ(packing.arena, Bytes(256));
}

TEST(Layout, EmptyBlocksTakeNoSpace) {
    const std::vector<Block> blocks{{0, 5, Bytes(0)}, {0, 5, Bytes(64)}, {0, 5, Bytes(0)}};
    EXPECT_EQ(packBlocks(blocks, Bytes(64)).arena, Bytes(64));
}

TEST(Layout, RandomBlocksNeverOverlapAndStayNearTheBound) {
    for (unsigned seed = 0; seed < 20; ++seed) {
        std::mt19937 random(seed);
        std::vector<Block> blocks;
        for (int i = 0; i < 300; ++i) {
            const std::int64_t begin = random() % 500;
            blocks.push_back({begin, begin + 1 + static_cast<std::int64_t>(random() % 60),
                              Bytes(1 + random() % 5000)});
        }
        const Packing packing = packBlocks(blocks, Bytes(64));
        expectValid(blocks, packing, 64);
        EXPECT_LT(ratio(packing.arena, packing.lowerBound), 1.3);
        EXPECT_EQ(packBlocks(blocks, Bytes(64)).offsets, packing.offsets);
    }
}

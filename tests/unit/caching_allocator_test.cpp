// SPDX-License-Identifier: MIT
#include "core/memory/caching_allocator.h"
#include "core/session/replay_events.h"

#include <gtest/gtest.h>

#include <random>

namespace hw::core {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

TEST(CachingAllocator, SegmentsAreThoseOfPyTorch) {
    for (const auto& [bytes, reserved] : {std::pair{std::int64_t{1}, 2 * kMiB},
                                          {kMiB, 2 * kMiB},
                                          {kMiB + 1, 20 * kMiB},
                                          {10 * kMiB - 512, 20 * kMiB},
                                          {10 * kMiB, 10 * kMiB},
                                          {10 * kMiB + 1, 12 * kMiB},
                                          {33 * kMiB, 34 * kMiB}}) {
        CachingAllocator allocator;
        ASSERT_TRUE(allocator.allocate(Bytes(bytes)));
        EXPECT_EQ(allocator.stats().reserved, Bytes(reserved)) << bytes;
    }
}

TEST(CachingAllocator, SizesAreRoundedAndBlocksReused) {
    CachingAllocator allocator;
    const auto a = allocator.allocate(Bytes(100)), b = allocator.allocate(Bytes(513));
    EXPECT_EQ(allocator.stats().allocated, Bytes(512 + 1024));
    EXPECT_EQ(allocator.stats().requested, Bytes(613));
    allocator.release(*a);
    EXPECT_EQ(allocator.allocate(Bytes(512)), a) << "best fit: the hole, not the rest";
    allocator.release(*a);
    allocator.release(*b);
    EXPECT_EQ(allocator.largestFreeBlock(), Bytes(2 * kMiB)) << "neighbours are joined";
    EXPECT_EQ(allocator.stats().segments, 1);
    allocator.emptyCache();
    EXPECT_EQ(allocator.stats().reserved, Bytes(0));
    EXPECT_EQ(allocator.stats().peakReserved, Bytes(2 * kMiB));
}

TEST(CachingAllocator, ALargeBlockKeepsARestThatIsNotWorthSplitting) {
    CachingAllocator allocator;
    ASSERT_TRUE(allocator.allocate(Bytes(11 * kMiB)));  // a segment of 12 MiB: 1 MiB stays unsplit
    EXPECT_EQ(allocator.stats().allocated, Bytes(12 * kMiB));
    EXPECT_EQ(allocator.largestFreeBlock(), Bytes(0));
}

TEST(CachingAllocator, PoolsAndStreamsAreKeptApart) {
    CachingAllocator allocator;
    const auto large = allocator.allocate(Bytes(2 * kMiB));
    allocator.release(*large);
    ASSERT_TRUE(allocator.allocate(Bytes(512)));
    EXPECT_EQ(allocator.stats().reserved, Bytes(22 * kMiB));
    ASSERT_TRUE(allocator.allocate(Bytes(512), 7));
    EXPECT_EQ(allocator.stats().reserved, Bytes(24 * kMiB));
}

TEST(CachingAllocator, WithoutRoomTheCacheIsEmptiedFirst) {
    CachingAllocator allocator(Bytes(40 * kMiB));
    const auto first = allocator.allocate(Bytes(30 * kMiB));
    allocator.release(*first);
    EXPECT_TRUE(allocator.allocate(Bytes(32 * kMiB)));
    EXPECT_EQ(allocator.stats().emptied, 1);
    EXPECT_EQ(allocator.stats().reserved, Bytes(32 * kMiB));
    EXPECT_FALSE(allocator.allocate(Bytes(10 * kMiB)));
    EXPECT_EQ(allocator.stats().failed, 1);
}

TEST(CachingAllocator, ManyRandomStepsLeaveNothingBehind) {
    CachingAllocator allocator;
    std::mt19937 random(1);
    std::vector<CachingAllocator::BlockId> held;
    for (int i = 0; i < 20000; ++i) {
        if (held.empty() || random() % 2 == 0) {
            held.push_back(*allocator.allocate(Bytes(1 + (random() % 3000 << random() % 14)),
                                               static_cast<std::int64_t>(random() % 2)));
        } else {
            std::swap(held[random() % held.size()], held.back());
            allocator.release(held.back());
            held.pop_back();
        }
        ASSERT_LE(allocator.stats().requested, allocator.stats().allocated);
        ASSERT_LE(allocator.stats().allocated, allocator.stats().reserved);
    }
    for (const auto id : held) allocator.release(id);
    EXPECT_EQ(allocator.stats().allocated, Bytes(0));
    EXPECT_EQ(allocator.stats().requested, Bytes(0));
    allocator.emptyCache();
    EXPECT_EQ(allocator.stats().reserved, Bytes(0)) << "every segment is whole again";
}

TEST(CachingAllocator, BlocksAndEventsAreReplayed) {
    const std::vector<Block> blocks{
        {0, 10, Bytes(4 * kMiB)}, {10, 20, Bytes(4 * kMiB)}, {5, 15, Bytes(17 * kMiB)}};
    const CachingAllocatorStats stats = replayBlocks(blocks);
    EXPECT_EQ(stats.peakReserved, Bytes(38 * kMiB)) << "the second takes the place of the first";
    EXPECT_EQ(stats.peakRequested, Bytes(21 * kMiB));
    EXPECT_EQ(stats.allocated, Bytes(0));
    EXPECT_NEAR(stats.fragmentation(), 16.0 / 38, 1e-9);

    std::vector<MemoryEventRow> events;
    const auto add = [&](const char* kind, std::int64_t address, std::int64_t bytes) {
        MemoryEventRow row;
        row.kind = kind, row.address = address, row.bytes = Bytes(bytes);
        events.push_back(row);
    };
    add("alloc", 1, 600), add("free_requested", 1, 600), add("free_completed", 1, 600);
    add("alloc", 2, 512), add("free", 9, 512);
    EXPECT_EQ(replayEvents(events, 0).allocated, Bytes(512));
    EXPECT_EQ(replayEvents(events, 0).peakAllocated, Bytes(1024));
    EXPECT_EQ(replayEvents(events, 1).segments, 0);
}

}  // namespace
}  // namespace hw::core

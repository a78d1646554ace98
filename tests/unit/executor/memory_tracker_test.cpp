// SPDX-License-Identifier: MIT
#include "executor/memory_tracker.h"

#include <gtest/gtest.h>

#include <cstring>

using namespace hw::executor;
using hw::core::Bytes;

namespace {
const std::string kName = "op 0 (test)";
}

TEST(MemoryTracker, CountsOnlyInsideWindows) {
    MemoryTracker tracker;
    void* own = tracker.allocate(1000);
    EXPECT_EQ(tracker.live(), Bytes(0));
    tracker.beginWindow(&kName, nullptr, false);
    void* a = tracker.allocate(100);
    void* b = tracker.allocate(50);
    tracker.release(a);
    EXPECT_EQ(tracker.windowPeak(), Bytes(150));
    tracker.endWindow();
    EXPECT_EQ(tracker.live(), Bytes(50));
    tracker.release(b);
    tracker.release(own);
    EXPECT_EQ(tracker.live(), Bytes(0));
    EXPECT_EQ(tracker.peak(), Bytes(150));
    EXPECT_EQ(tracker.allocate(0), nullptr);
}

TEST(MemoryTracker, RecordsOrderAndLifetimes) {
    MemoryTracker tracker;
    tracker.beginWindow(&kName, nullptr, true);
    void* workspace = tracker.allocate(64);
    void* output = tracker.allocate(32);
    tracker.release(workspace);
    const OpSignature signature = tracker.endWindow();
    ASSERT_EQ(signature.allocations.size(), 2u);
    EXPECT_EQ(signature.events, 3);
    EXPECT_EQ(signature.allocations[0].bytes, Bytes(64));
    EXPECT_EQ(signature.allocations[0].endEvent, 2);
    EXPECT_EQ(signature.allocations[1].beginEvent, 1);
    EXPECT_FALSE(signature.allocations[1].endEvent);
    EXPECT_EQ(signature.allocations[1].address, output);
    tracker.release(output);
}

TEST(MemoryTracker, ServesPlannedOffsets) {
    MemoryTracker tracker;
    ASSERT_TRUE(tracker.setArena(Bytes(256)));
    const std::vector<ArenaSlot> slots{{Bytes(64), Bytes(100)}, {Bytes(0), Bytes(64)}};
    tracker.beginWindow(&kName, &slots, false);
    auto* first = static_cast<char*>(tracker.allocate(100));
    auto* second = static_cast<char*>(tracker.allocate(64));
    tracker.endWindow();
    EXPECT_EQ(first - second, 64);
    EXPECT_EQ(tracker.arenaTop(), Bytes(164));
    EXPECT_TRUE(tracker.fallbacks().empty());
    EXPECT_FALSE(tracker.setArena(Bytes(0))) << "blocks are live";
    tracker.release(first);
    tracker.release(second);
    EXPECT_TRUE(tracker.setArena(Bytes(0)));
}

TEST(MemoryTracker, ReportsEveryFallback) {
    MemoryTracker tracker;
    ASSERT_TRUE(tracker.setArena(Bytes(128)));
    const std::vector<ArenaSlot> slots{{Bytes(0), Bytes(64)},
                                       {Bytes(0), Bytes(64)},
                                       {Bytes(64), Bytes(32)},
                                       {Bytes(64), Bytes(128)},
                                       {Bytes(64), Bytes(8)}};
    tracker.beginWindow(&kName, &slots, false);
    std::vector<void*> blocks;
    for (const std::size_t bytes : {64, 64, 33, 128}) blocks.push_back(tracker.allocate(bytes));
    for (void* block : blocks) {
        ASSERT_NE(block, nullptr);
        std::memset(block, 1, 33);
    }
    tracker.endWindow();
    ASSERT_EQ(tracker.fallbacks().size(), 4u);
    EXPECT_NE(tracker.fallbacks()[0].why.find("taken"), std::string::npos);
    EXPECT_NE(tracker.fallbacks()[1].why.find("33 bytes"), std::string::npos);
    EXPECT_NE(tracker.fallbacks()[2].why.find("outside"), std::string::npos);
    EXPECT_NE(tracker.fallbacks()[3].why.find("fewer"), std::string::npos);
    EXPECT_EQ(tracker.live(), Bytes(64 + 64 + 33 + 128)) << "fallbacks count too";
    for (void* block : blocks) tracker.release(block);
    EXPECT_EQ(tracker.live(), Bytes(0));
}

TEST(MemoryTracker, CheckingModeZeroesNewBlocks) {
    MemoryTracker tracker;
    ASSERT_TRUE(tracker.setArena(Bytes(64)));
    tracker.setChecking(true);
    const std::vector<ArenaSlot> slot{{Bytes(0), Bytes(16)}};
    for (int round = 0; round < 2; ++round) {
        tracker.beginWindow(&kName, &slot, false);
        auto* block = static_cast<unsigned char*>(tracker.allocate(16));
        tracker.endWindow();
        for (int i = 0; i < 16; ++i) EXPECT_EQ(block[i], 0);
        std::memset(block, 7, 16);
        tracker.release(block);
        EXPECT_EQ(block[3], 0xff) << "the arena still holds what was left in it";
    }
}

// SPDX-License-Identifier: MIT
#include "executor/replay/memory_tracker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>

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

namespace {

// Stands in for a device: memory of its own with wider alignment, and no more than it has.
class SmallMemory final : public MemorySource {
public:
    void* take(std::size_t bytes, std::size_t alignment) override {
        if (bytes > left_) return nullptr;
        left_ -= bytes;
        void* block = hostMemory().take(bytes, std::max<std::size_t>(alignment, 512));
        taken_[block] = bytes;
        return block;
    }
    void give(void* block) override {
        left_ += taken_.at(block);
        taken_.erase(block);
        hostMemory().give(block);
    }
    void fill(void* block, int byte, std::size_t bytes) override {
        ++fills;
        hostMemory().fill(block, byte, bytes);
    }
    Bytes alignment() const override { return Bytes(512); }
    std::size_t blocks() const { return taken_.size(); }

    int fills = 0;

private:
    std::size_t left_ = 10'000;
    std::map<void*, std::size_t> taken_;
};

}  // namespace

TEST(MemoryTracker, TakesEverythingFromItsSource) {
    SmallMemory memory;
    {
        MemoryTracker tracker(memory);
        ASSERT_TRUE(tracker.setArena(Bytes(4096)));
        EXPECT_FALSE(tracker.setArena(Bytes(20'000))) << "more than there is";
        ASSERT_TRUE(tracker.setArena(Bytes(4096)));
        tracker.setChecking(true);
        const std::vector<ArenaSlot> slots{{Bytes(512), Bytes(100)}};
        tracker.beginWindow(&kName, &slots, false);
        void* inside = tracker.allocate(100);
        void* outside = tracker.allocate(200);  // not planned
        EXPECT_EQ(memory.blocks(), 2u);
        EXPECT_EQ(tracker.allocate(50'000), nullptr);
        tracker.endWindow();
        EXPECT_EQ(tracker.fallbacks().size(), 2u);
        tracker.release(inside);
        tracker.release(outside);
        EXPECT_EQ(memory.fills, 4) << "when they come and when they go";
        EXPECT_EQ(memory.blocks(), 1u) << "the arena";
        EXPECT_EQ(tracker.live(), Bytes(0));
    }
    EXPECT_EQ(memory.blocks(), 0u);
}

TEST(MemoryTracker, WhatIsDisownedIsNotCountedWhenItGoes) {
    MemoryTracker tracker;
    tracker.beginWindow(&kName, nullptr, false);
    void* kept = tracker.allocate(1000);
    tracker.endWindow();
    EXPECT_EQ(tracker.disownLive(), Bytes(1000));
    tracker.beginWindow(&kName, nullptr, false);
    void* counted = tracker.allocate(10);
    tracker.endWindow();
    EXPECT_EQ(tracker.live(), Bytes(10));
    tracker.release(kept);
    EXPECT_EQ(tracker.live(), Bytes(10));
    tracker.release(counted);
    EXPECT_EQ(tracker.live(), Bytes(0));
}

// SPDX-License-Identifier: MIT
// Blocks of the framework's allocators: those of the CPU through a stand-in for libc10, those of a
// GPU as its allocator would tell them.
#include "profiler/agent/allocations.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "profiler/agent/native/agent_api.h"

namespace hw::profiler::agent {
namespace {

constexpr std::uintptr_t kGpu = 0x7f0000000000;  // addresses that nothing here has

class Allocations : public testing::Test {
protected:
    void SetUp() override {
        static void* const library = dlopen(STANDIN_C10, RTLD_NOW);
        ASSERT_NE(library, nullptr) << dlerror();
        allocate_ = reinterpret_cast<void* (*)(std::size_t)>(dlsym(library, "standinAllocate"));
        free_ = reinterpret_cast<void (*)(void*)>(dlsym(library, "standinFree"));
        ASSERT_GE(patchAllocator(), 2);
    }
    void TearDown() override {
        pauseCounting(false);
        unpatchAllocator();
    }
    static std::int64_t live() { return endOpWindow().live; }
    static std::vector<std::int64_t> freed() {
        std::vector<std::int64_t> tags(native::kMostFreed);
        tags.resize(static_cast<std::size_t>(takeFreed(tags.data())));
        return tags;
    }

    void* (*allocate_)(std::size_t) = nullptr;
    void (*free_)(void*) = nullptr;
};

TEST_F(Allocations, OfBothKindsAddUp) {
    void* const block = allocate_(100);
    countAllocated(kGpu, 5000);
    EXPECT_EQ(live(), 5100);
    EXPECT_EQ(blockBytes(reinterpret_cast<std::uintptr_t>(block)), 100);
    EXPECT_EQ(blockBytes(kGpu), 5000);
    countFreed(kGpu);
    free_(block);
    EXPECT_EQ(live(), 0);
    EXPECT_EQ(blockBytes(kGpu), -1);
}

TEST_F(Allocations, OfAnOpInAnotherThreadAreInItsWindow) {
    countAllocated(kGpu, 1000);
    EXPECT_EQ(beginOpWindow(), 1000);
    std::thread([] {  // autograd's thread of a device
        countAllocated(kGpu + 512, 700);
        countFreed(kGpu + 512);
        countAllocated(kGpu + 1024, 50);
    })
        .join();
    const AllocationFigures op = endOpWindow();
    EXPECT_EQ(op.live, 1050);
    EXPECT_EQ(op.peak, 1700);
    EXPECT_EQ(restartStepWindow().peak, 1700);
    EXPECT_EQ(restartStepWindow().peak, 1050);
}

TEST_F(Allocations, ToldTwiceCountOnce) {
    for (int teller = 0; teller < 2; ++teller) countAllocated(kGpu, 300);
    EXPECT_EQ(live(), 300);
    for (int teller = 0; teller < 2; ++teller) countFreed(kGpu);
    EXPECT_EQ(live(), 0);
    EXPECT_EQ(freed().size(), 1U);
}

TEST_F(Allocations, WhoseEndWentUnseenAreReplaced) {
    countAllocated(kGpu, 300);
    countAllocated(kGpu, 40);
    EXPECT_EQ(live(), 40);
}

TEST_F(Allocations, TellTheirTagWhenTheyGo) {
    countAllocated(kGpu, 300);
    const BlockTag counted = tagBlock(kGpu, 11, false);
    EXPECT_EQ(counted.bytes, 300);
    EXPECT_TRUE(counted.watched);
    EXPECT_FALSE(tagBlock(kGpu + 512, 12, false).watched);
    const BlockTag older = tagBlock(kGpu + 512, 12, true);  // made before they were told
    EXPECT_EQ(older.bytes, -1);
    EXPECT_TRUE(older.watched);
    EXPECT_EQ(blockBytes(kGpu + 512), -1);
    countFreed(kGpu + 512);
    countFreed(kGpu);
    EXPECT_EQ(freed(), (std::vector<std::int64_t>{12, 11}));
    EXPECT_EQ(live(), 0);
}

TEST_F(Allocations, AreAsOldAsTheStepsThatBeganBefore) {
    const std::int64_t begun = countStep();
    countAllocated(kGpu, 300);
    EXPECT_EQ(countStep(), begun + 1);
    countAllocated(kGpu + 512, 20);
    EXPECT_EQ(tagBlock(kGpu, 11, false).steps, begun);
    EXPECT_EQ(tagBlock(kGpu + 512, 12, false).steps, begun + 1);
    const BlockTag again = tagBlock(kGpu, 13, false);
    EXPECT_EQ(again.steps, -1);
    EXPECT_EQ(again.before, 11U);
    EXPECT_EQ(tagBlock(kGpu + 1024, 14, true).steps, -1);
}

TEST_F(Allocations, OfOursAreNotCounted) {
    pauseCounting(true);
    countAllocated(kGpu, 300);
    pauseCounting(false);
    countFreed(kGpu);
    EXPECT_EQ(live(), 0);
    EXPECT_TRUE(freed().empty());
}

TEST_F(Allocations, AreNotCountedOutsideOfARecording) {
    countAllocated(kGpu, 300);
    unpatchAllocator();
    countAllocated(kGpu + 512, 20);
    countFreed(kGpu);
    ASSERT_GE(patchAllocator(), 2);  // another one
    EXPECT_EQ(live(), 0);
    countFreed(kGpu + 512);
    EXPECT_EQ(live(), 0);
    EXPECT_TRUE(freed().empty());
}

TEST_F(Allocations, BeyondTheCapAreRefused) {
    capLiveBytes(1000);
    countAllocated(kGpu, 700);
    EXPECT_EQ(allocate_(400), nullptr);
    void* const block = allocate_(200);
    EXPECT_NE(block, nullptr);
    free_(block);
    capLiveBytes(0);
}

std::vector<native::Shortage> gShortages;

TEST_F(Allocations, BeyondTheCapAreMadeOnceThereIsRoom) {
    gShortages.clear();
    capLiveBytes(1000);
    onShortage([](const native::Shortage& shortage) {
        gShortages.push_back(shortage);
        if (gShortages.size() == 2) countFreed(kGpu);
        return gShortages.size() < 4 ? native::Reclaim::Made : native::Reclaim::None;
    });
    countAllocated(kGpu, 700);
    void* const block = allocate_(400);
    EXPECT_NE(block, nullptr);
    EXPECT_EQ(allocate_(900), nullptr);
    free_(block);
    onShortage([](const native::Shortage&) { return native::Reclaim::Above; });
    void* const above = allocate_(2000);
    EXPECT_NE(above, nullptr);
    EXPECT_EQ(live(), 2000);
    free_(above);
    onShortage(nullptr);
    ASSERT_EQ(gShortages.size(), 4U);
    const std::int64_t bytes[] = {400, 400, 900, 900};
    for (int i = 0; i < 4; ++i) {
        EXPECT_EQ(gShortages[i].bytes, bytes[i]);
        EXPECT_EQ(gShortages[i].memory, 0);
        EXPECT_EQ(gShortages[i].before, i % 2);
    }
}

TEST_F(Allocations, OfManyThreadsAddUp) {
    std::vector<std::thread> threads;
    for (std::uintptr_t t = 0; t < 4; ++t)
        threads.emplace_back([t] {
            const std::uintptr_t first = kGpu + (t << 32);
            for (std::uintptr_t i = 0; i < 3000; ++i) countAllocated(first + i * 512, 10);
            for (std::uintptr_t i = 0; i < 2000; ++i) countFreed(first + i * 512);
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(live(), 4 * 1000 * 10);
    EXPECT_EQ(freed().size(), 4U * 2000U);
}

}  // namespace
}  // namespace hw::profiler::agent

// SPDX-License-Identifier: MIT
// What the capture makes of the events of the framework's CUDA allocator, made by hand, and how the
// live runtime stands between an allocator and its callers: no GPU is needed for them.
#include "cuda_allocations.cpp"
#include "cuda_room.cpp"

#include <cstdio>
#include <cstdlib>
#include <map>

#if TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR < 3
#define FAKE_CONST const
#else
#define FAKE_CONST
#endif

namespace {

using namespace hw::profiler::native;
using Entry = allocator::TraceEntry;

std::map<std::uint64_t, std::int64_t> gSeen;
int gFrees = 0;

void expect(bool holds, const char* what) {
    if (holds) return;
    std::printf("not so: %s\n", what);
    std::exit(1);
}

Entry event(Entry::Action action, std::uint64_t address, std::size_t bytes) {
#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 7
    return {action, 0, address, bytes, nullptr, {0, 0}, c10::getApproximateTime()};
#else
    return {action, 0, address, bytes, nullptr, c10::getApproximateTime()};
#endif
}

/// Has the members of the framework's that are stood between.
struct FakeAllocator : c10::Allocator {
    c10::DataPtr allocate(std::size_t bytes) FAKE_CONST override {
        return {take(bytes), c10::Device(c10::DeviceType::CPU)};
    }
    virtual void* raw_alloc(std::size_t bytes) { return take(bytes); }
    void copy_data(void*, const void*, std::size_t) const {}
    void* take(std::size_t bytes) const {
        ++asked;
        TORCH_CHECK_WITH(OutOfMemoryError, memory >= bytes, "there is no memory");
        return const_cast<FakeAllocator*>(this);
    }
    static inline int asked = 0;
    static inline std::size_t memory = 1000;
};

template <typename Call>
bool refused(const Call& call) {
    try {
        call();
        return false;
    } catch (const c10::OutOfMemoryError&) {
        return true;
    }
}

std::int64_t gLimit = 500;
int gRescues = 0;

void standsBetween() {
    FakeAllocator fake;
    c10::Allocator* const seen = &fake;  // as the framework holds it
    AgentApi agent{};
    agent.admit = [](std::int64_t bytes) { return bytes <= gLimit ? 1 : 0; };
    agent.rescue = [](Shortage* shortage) {
        expect(shortage->memory == 1, "there is no memory, whatever the limit");
        FakeAllocator::memory += 100;
        return gRescues-- > 0 ? 1 : 0;
    };
    gRoomAgent = &agent;
    expect(standBetween(static_cast<c10::Allocator&>(fake), &c10::Allocator::allocate, gAllocate,
                        &allocateWithRoom) &&
               standBetween(fake, &FakeAllocator::raw_alloc, gRawAlloc, &rawAllocWithRoom),
           "both members are virtual");
    expect(virtualFunction(fake, &FakeAllocator::take) == nullptr, "this one is not");
    expect(seen->allocate(400).get() == &fake && FakeAllocator::asked == 1,
           "it is asked as before");
    expect(refused([&] { seen->allocate(501); }) && FakeAllocator::asked == 1,
           "what passes the limit is refused before");
    FakeAllocator* volatile raw = &fake;
    expect(refused([&] { raw->raw_alloc(501); }) && FakeAllocator::asked == 1, "this way, too");
    gLimit = 1 << 20;
    gRescues = 3;
    expect(raw->raw_alloc(1200) == &fake && gRescues == 1, "what finds no memory is asked again");
    gRescues = 1;
    expect(refused([&] { seen->allocate(2000); }), "until there is no more room to be made");
}

}  // namespace

int main() {
    standsBetween();
    onBlock(event(Entry::ALLOC, 512, 100));  // before any recording
    AgentApi agent{};
    agent.allocated = [](std::uint64_t address, std::int64_t bytes) { gSeen[address] = bytes; };
    agent.released = [](std::uint64_t address) {
        gFrees += static_cast<int>(gSeen.erase(address));
    };
    tellCudaBlocks(&agent);
    expect(gSeen.empty(), "nothing is told before somebody listens");

    const std::uint64_t block = 0x7f1234567000;
    onBlock(event(Entry::SEGMENT_ALLOC, block, 2 << 20));
    onBlock(event(Entry::SEGMENT_MAP, block, 2 << 20));
    expect(gSeen.empty(), "segments are no blocks");
    onBlock(event(Entry::ALLOC, block, 1000));
    onBlock(event(Entry::ALLOC, block + 1024, 24));
    expect(gSeen.size() == 2 && gSeen[block] == 1000, "blocks have the bytes that were asked for");
    onBlock(event(Entry::FREE_REQUESTED, block, 1000));
    expect(gFrees == 1 && gSeen.size() == 1, "a block goes when it is freed");
    onBlock(event(Entry::ALLOC, block, 8));
    onBlock(event(Entry::FREE_COMPLETED, block + 1024, 24));
    onBlock(event(Entry::OOM, block, 8));
    onBlock(event(Entry::SNAPSHOT, 0, 0));
    onBlock(event(Entry::SEGMENT_FREE, block, 2 << 20));
    expect(gFrees == 1 && gSeen.size() == 2, "nothing else changes them");

    countCudaBlocks();
    expect(!cudaBlocksCounted() && *cudaBlocksMissed() == '\0',
           "as long as CUDA is not initialized, it is open whether they are told");
    std::puts("as told");
}

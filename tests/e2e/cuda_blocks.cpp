// SPDX-License-Identifier: MIT
// What the capture makes of the events of the framework's CUDA allocator, made by hand: no GPU is
// needed to make them.
#include "cuda_allocations.cpp"

#include <cstdio>
#include <cstdlib>
#include <map>

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

}  // namespace

int main() {
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

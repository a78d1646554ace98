// SPDX-License-Identifier: MIT
#include "cuda_allocations.h"

#include <atomic>
#include <cstdlib>

#ifdef HIGHWATER_CUDA  // its headers are there, and the framework is built for CUDA
#include <torch/version.h>
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 1)
#define HIGHWATER_CUDA_BLOCKS
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGraphsC10Utils.h>
#endif
#endif

namespace hw::profiler::native {
namespace {

enum class Blocks { Open, Counted, Missed };
std::atomic<Blocks> gBlocks{Blocks::Open};
std::atomic<const AgentApi*> gBlocksAgent{nullptr};

#ifdef HIGHWATER_CUDA_BLOCKS

namespace allocator = c10::cuda::CUDACachingAllocator;

/// Called under the allocator's lock, by a thread that may hold Python's or not: it takes neither,
/// and allocates nothing. Sizes are those that were asked for in both events. A block stops being
/// the program's when it is freed, as in memory_allocated(); FREE_COMPLETED may come later, when
/// other streams are done with it.
void onBlock(const allocator::TraceEntry& entry) {
    const AgentApi* const agent = gBlocksAgent.load(std::memory_order_acquire);
    if (agent == nullptr) return;
    const auto address = static_cast<std::uint64_t>(entry.addr_);
    if (entry.action_ == allocator::TraceEntry::ALLOC)
        agent->allocated(address, static_cast<std::int64_t>(entry.size_));
    else if (entry.action_ == allocator::TraceEntry::FREE_REQUESTED)
        agent->released(address);
}

/// Before the allocator has its devices, it would forget who asks.
Blocks attach() {
    if (!allocator::get()->initialized()) return Blocks::Open;
    static std::atomic_flag attached = ATOMIC_FLAG_INIT;
    if (attached.test_and_set()) return Blocks::Open;  // another thread is at it
    if (std::getenv("PYTORCH_NO_CUDA_MEMORY_CACHING") != nullptr) return Blocks::Missed;
    try {
        allocator::get()->attachAllocatorTraceTracker(&onBlock);
        return Blocks::Counted;
    } catch (...) {  // one of another kind: cudaMallocAsync, or the program's own
        return Blocks::Missed;
    }
}

constexpr const char* kMissed = "the program's CUDA allocator does not tell them";

#else

Blocks attach() {
    return Blocks::Missed;
}

#ifdef HIGHWATER_CUDA
constexpr const char* kMissed = "this framework does not tell them: those from 2.1 on do";
#else
constexpr const char* kMissed = "the headers of CUDA were not found when the capture was built";
#endif

#endif

}  // namespace

void tellCudaBlocks(const AgentApi* agent) {
    gBlocksAgent.store(agent, std::memory_order_release);
}

void countCudaBlocks() {
    if (gBlocks.load(std::memory_order_relaxed) != Blocks::Open) return;
    if (const Blocks now = attach(); now != Blocks::Open) gBlocks = now;
}

bool cudaBlocksCounted() {
    return gBlocks == Blocks::Counted;
}

bool mayWaitForCuda() {
#ifdef HIGHWATER_CUDA_BLOCKS
    return c10::cuda::currentStreamCaptureStatusMayInitCtx() == c10::cuda::CaptureStatus::None;
#else
    return false;
#endif
}

const char* cudaBlocksMissed() {
    return gBlocks == Blocks::Missed ? kMissed : "";
}

}  // namespace hw::profiler::native

// SPDX-License-Identifier: MIT
#include "cuda_room.h"

#include "cuda_allocations.h"

#ifdef HIGHWATER_CUDA
#include <c10/core/Allocator.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/util/Exception.h>

#include <cstdlib>

#include "virtual_function.h"
#endif

namespace hw::profiler::native {

#ifdef HIGHWATER_CUDA

namespace {

// As their members are called: `this` first.
using Allocate = c10::DataPtr (*)(c10::Allocator*, std::size_t);
using RawAlloc = void* (*)(void*, std::size_t);
using RawAllocOnStream = void* (*)(void*, std::size_t, cudaStream_t);

const AgentApi* gRoomAgent = nullptr;
Allocate gAllocate = nullptr;
RawAlloc gRawAlloc = nullptr;
RawAllocOnStream gRawAllocOnStream = nullptr;

/// The framework's own error, which programs know.
[[noreturn]] void refuse(std::size_t bytes) {
    TORCH_CHECK_WITH(OutOfMemoryError, false, "CUDA out of memory. Tried to allocate ", bytes,
                     " bytes, which would pass the limit on live bytes that Highwater was given.");
    std::abort();
}

template <typename Make>
auto withRoom(std::size_t bytes, const Make& make) {
    if (bytes == 0) return make();
    if (gRoomAgent->admit(static_cast<std::int64_t>(bytes)) == 0) refuse(bytes);
    Shortage shortage{static_cast<std::int64_t>(bytes), 1, 0};
    while (true) {
        try {
            return make();
        } catch (const c10::OutOfMemoryError&) {
            if (gRoomAgent->rescue(&shortage) == 0) throw;
        }
    }
}

c10::DataPtr allocateWithRoom(c10::Allocator* self, std::size_t bytes) {
    return withRoom(bytes, [&] { return gAllocate(self, bytes); });
}
void* rawAllocWithRoom(void* self, std::size_t bytes) {
    return withRoom(bytes, [&] { return gRawAlloc(self, bytes); });
}
void* rawAllocOnStreamWithRoom(void* self, std::size_t bytes, cudaStream_t stream) {
    return withRoom(bytes, [&] { return gRawAllocOnStream(self, bytes, stream); });
}

/// What the member did is known before the first call arrives.
template <typename Object, typename Member, typename Function>
bool standBetween(Object& object, Member member, Function& before, Function between) {
    void** const entry = virtualFunction(object, member);
    if (entry == nullptr) return false;
    before = reinterpret_cast<Function>(__atomic_load_n(entry, __ATOMIC_SEQ_CST));
    return redirectVirtual(entry, reinterpret_cast<void*>(between)) != nullptr;
}

bool standBetween(c10::cuda::CUDACachingAllocator::CUDAAllocator& allocator) {
    using c10::cuda::CUDACachingAllocator::CUDAAllocator;
    return standBetween(static_cast<c10::Allocator&>(allocator), &c10::Allocator::allocate,
                        gAllocate, &allocateWithRoom) &&
           standBetween(allocator, &CUDAAllocator::raw_alloc, gRawAlloc, &rawAllocWithRoom) &&
           standBetween(allocator, &CUDAAllocator::raw_alloc_with_stream, gRawAllocOnStream,
                        &rawAllocOnStreamWithRoom);
}

}  // namespace

bool keepCudaLimit(const AgentApi& agent) {
    if (!cudaBlocksCounted()) return false;
    gRoomAgent = &agent;
    static const bool between = standBetween(*c10::cuda::CUDACachingAllocator::get());
    return between;
}

#else

bool keepCudaLimit(const AgentApi&) {
    return false;
}

#endif

}  // namespace hw::profiler::native

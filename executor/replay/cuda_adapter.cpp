// SPDX-License-Identifier: MIT
#include "executor/replay/cuda_adapter.h"

#ifdef HIGHWATER_EXEC_CUDA
#include <ATen/Context.h>
#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>
#include <torch/csrc/cuda/CUDAPluggableAllocator.h>

#include <cstdlib>
#endif

namespace hw::executor::torch::cuda {

using core::Error;
using core::ErrorCode;
using core::Status;

#ifdef HIGHWATER_EXEC_CUDA

namespace {

constexpr core::Bytes kAlignment{
    512};  // of cudaMalloc is 256; what the caching allocator rounds to

Status check(cudaError_t code, const char* what) {
    if (code == cudaSuccess) return {};
    return Error{ErrorCode::Internal,
                 std::string("CUDA could not ") + what + ": " + cudaGetErrorString(code), ""};
}

class DeviceMemory final : public MemorySource {
public:
    void* take(std::size_t bytes, std::size_t /*cudaMalloc aligns enough*/) override {
        void* block = nullptr;
        if (cudaMalloc(&block, bytes) == cudaSuccess) return block;
        cudaGetLastError();  // kernels must not find it
        return nullptr;
    }
    // At exit CUDA may be gone before the last block: there is nothing left to give back then.
    void give(void* block) override { cudaFree(block); }
    void fill(void* block, int byte, std::size_t bytes) override {
        cudaMemsetAsync(block, byte, bytes, nullptr);
    }
    core::Bytes alignment() const override { return kAlignment; }
};

MemoryTracker* installed = nullptr;

Status copy(void* into, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
    if (bytes == 0) return {};
    if (Status ok = check(cudaMemcpyAsync(into, from, bytes, kind, nullptr), "copy"); !ok)
        return ok;
    return check(cudaStreamSynchronize(nullptr), "copy");
}

}  // namespace

bool built() {
    return true;
}

Status open() {
    int devices = 0;
    const cudaError_t code = cudaGetDeviceCount(&devices);
    if (code != cudaSuccess || devices == 0)
        return Error{ErrorCode::Usage,
                     std::string("there is no GPU that can be used: ") +
                         (code == cudaSuccess ? "none found" : cudaGetErrorString(code)),
                     "run it with --device cpu, or where the NVIDIA driver sees a GPU"};
    // cuBLAS is deterministic with workspaces of this form only, and reads it once.
    setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*replace=*/0);
    at::Context& context = at::globalContext();
    context.setDeterministicAlgorithms(true, /*warn_only=*/true);
    context.setDeterministicCuDNN(true);
    context.setBenchmarkCuDNN(false);
    return check(cudaSetDevice(0), "use the first GPU");
}

MemorySource& memory() {
    static DeviceMemory memory;
    return memory;
}

void installAllocator(MemoryTracker& tracker) {
    installed = &tracker;
    namespace pluggable = ::torch::cuda::CUDAPluggableAllocator;
    static const auto custom = pluggable::createCustomAllocator(
        [](std::size_t bytes, int, cudaStream_t) -> void* {
            void* block = installed->allocate(bytes);
            // A kernel library would take nullptr for an empty tensor.
            if (!block && bytes > 0)
                C10_THROW_ERROR(OutOfMemoryError, "no memory left on the GPU for " +
                                                      std::to_string(bytes) + " bytes");
            return block;
        },
        [](void* block, std::size_t, int, cudaStream_t) { installed->release(block); });
    static bool done = false;
    if (done) return;  // an allocator can be changed only before its first use
    pluggable::changeCurrentAllocator(custom);
    done = true;
    at::globalContext().lazyInitDevice(c10::DeviceType::CUDA);
}

c10::Allocator* allocator() {
    return c10::cuda::CUDACachingAllocator::get();
}

at::Generator makeGenerator(bool isDefault) {
    return isDefault ? at::cuda::detail::getDefaultCUDAGenerator(0)
                     : at::cuda::detail::createCUDAGenerator(0);
}

Status synchronize() {
    return check(cudaDeviceSynchronize(), "finish the kernels");
}

Status toHost(Span<std::byte> into, const void* from) {
    return copy(into.data(), from, into.size(), cudaMemcpyDeviceToHost);
}

Status toDevice(void* into, Span<const std::byte> from) {
    return copy(into, from.data(), from.size(), cudaMemcpyHostToDevice);
}

#else

namespace {

Error notBuilt() {
    return {ErrorCode::Usage, "this executor runs on the cpu: its libtorch has no CUDA",
            "build one with -DHIGHWATER_TORCH=FOLDER, the package 'torch' of a CUDA build"};
}

}  // namespace

bool built() {
    return false;
}

Status open() {
    return notBuilt();
}

MemorySource& memory() {
    return hostMemory();
}

void installAllocator(MemoryTracker&) {}

c10::Allocator* allocator() {
    return nullptr;
}

at::Generator makeGenerator(bool) {
    return {};
}

Status synchronize() {
    return notBuilt();
}

Status toHost(Span<std::byte>, const void*) {
    return notBuilt();
}

Status toDevice(void*, Span<const std::byte>) {
    return notBuilt();
}

#endif

}  // namespace hw::executor::torch::cuda

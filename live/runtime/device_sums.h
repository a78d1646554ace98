// SPDX-License-Identifier: MIT
// Sums of storages on GPUs. They are queued like the ops whose results they are taken of, and
// compared on the host later, all at once.
//
// Nothing of CUDA is linked, and none of its headers is needed: the driver is the one that the
// process has, and NVRTC, which torch brings, compiles the kernel. Where a call fails, no more sums
// are taken, and why() says why.
#pragma once

#include <c10/core/StorageImpl.h>
#include <c10/core/Stream.h>

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hw::live::runtime {

/// Functions of CUDA's driver API (cuda.h), by the types of its documentation: CUresult, CUdevice
/// and enumerations are ints, handles are pointers, CUdeviceptr has 64 bits. The names are without
/// their "cu", as cuda.h makes macros of some.
struct CudaDriver {
    using Handle = void*;
    using Address = unsigned long long;

    int (*deviceGet)(int* device, int ordinal);
    int (*deviceGetAttribute)(int* value, int attribute, int device);
    int (*devicePrimaryCtxRetain)(Handle* context, int device);
    int (*ctxPushCurrent)(Handle context);
    int (*ctxPopCurrent)(Handle* context);
    int (*threadExchangeStreamCaptureMode)(int* mode);
    int (*streamIsCapturing)(Handle stream, int* status);
    int (*moduleLoadData)(Handle* module, const void* image);
    int (*moduleGetFunction)(Handle* function, Handle module, const char* name);
    int (*memAlloc)(Address* address, std::size_t bytes);
    int (*memsetD8Async)(Address address, unsigned char value, std::size_t bytes, Handle stream);
    int (*launchKernel)(Handle function, unsigned gridX, unsigned gridY, unsigned gridZ,
                        unsigned blockX, unsigned blockY, unsigned blockZ, unsigned shared,
                        Handle stream, void** parameters, void** extra);
    int (*memcpyDtoHAsync)(void* to, Address from, std::size_t bytes, Handle stream);
    int (*streamSynchronize)(Handle stream);

    /// The process's; null: it has none.
    static const CudaDriver* ofProcess();
};

/// The kernel for GPUs of a compute capability such as 90, as cuModuleLoadData() takes it. Empty:
/// `why` says why not.
std::string compileDeviceSums(int capability, std::string& why);

class DeviceSums {
public:
    using Compile = std::string (*)(int capability, std::string& why);
    /// Null: the process's driver, once it is needed.
    explicit DeviceSums(const CudaDriver* driver = nullptr, Compile compile = &compileDeviceSums)
        : driver_(driver), compile_(compile) {}

    void beginStep();
    /// Queues the sum of a storage's bytes on the stream on which they are written. Its number in
    /// the step; 0: none is taken.
    std::uint64_t take(const c10::StorageImpl& storage, const c10::Stream& stream);
    /// Queues that of the bytes that ought to be the same. False: they are not compared.
    bool compare(std::uint64_t number, const c10::StorageImpl& storage, const c10::Stream& stream);
    /// Waits for what is queued on these streams. Which of the comparisons since the last time, in
    /// their order, found others.
    std::vector<std::size_t> differences();

    /// Why no sums are taken any more; empty: they are.
    const std::string& why() const { return why_; }

    static constexpr std::uint64_t kMostPairs = 1 << 16;  // of a step

private:
    struct Device {
        int index = 0;
        CudaDriver::Handle context = nullptr, function = nullptr;
        std::string image;                  // of the kernel, until it is loaded
        CudaDriver::Address sums = 0;       // pairs: of what was dropped, of what has come back
        std::uint64_t first = 1, next = 1;  // numbers of this step's pairs
        bool zeroed = false;                // in this step
        std::optional<c10::Stream> stream;  // on which sums were queued last
    };
    struct Comparison {
        Device* device;
        std::uint64_t number;
    };

    /// Runs work(device, stream) where something can be queued now.
    template <typename Work>
    bool on(const c10::Stream& stream, const Work& work);
    Device& deviceAt(int index);
    bool prepare(Device& device);
    bool follow(Device& device, const c10::Stream& stream, CudaDriver::Handle handle);
    bool queue(Device& device, const c10::StorageImpl& storage, CudaDriver::Handle stream,
               std::uint64_t sum);
    bool worked(int result, const char* call);
    bool fail(const std::string& why);

    const CudaDriver* driver_;
    const Compile compile_;
    std::list<Device> devices_;
    std::vector<Comparison> comparisons_;
    std::string why_;
};

}  // namespace hw::live::runtime

// SPDX-License-Identifier: MIT
#include "device_sums.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstring>

#include "device_sums_kernel.h"
#include "streams.h"
#ifdef HIGHWATER_CUDA
#include <c10/cuda/CUDAStream.h>
#endif

namespace hw::live::runtime {
namespace {

// Of cuda.h.
constexpr int kOutOfMemory = 2;
constexpr int kFirstOfCapture = 900, kLastOfCapture = 909;  // errors while a graph is captured
constexpr int kMajor = 75, kMinor = 76;                     // attributes: the compute capability
constexpr int kRelaxed = 2;                                 // mode of capturing

constexpr unsigned kThreads = 256;           // of a block
constexpr std::uint64_t kWordsOfThread = 8;  // at least, where there is more than one block
constexpr std::uint64_t kMostBlocks = 1024;
constexpr std::size_t kBytesOfSums = DeviceSums::kMostPairs * 2 * sizeof(std::uint64_t);

template <typename Function>
bool find(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    return function != nullptr;
}

/// Of nvrtc.h, by the types of its documentation: nvrtcResult is an int, nvrtcProgram a pointer.
struct Nvrtc {
    using Program = void*;
    int (*create)(Program* program, const char* source, const char* name, int headers,
                  const char* const* texts, const char* const* names) = nullptr;
    int (*compile)(Program program, int count, const char* const* options) = nullptr;
    int (*destroy)(Program* program) = nullptr;
    int (*ptxSize)(Program program, std::size_t* bytes) = nullptr;
    int (*ptx)(Program program, char* to) = nullptr;
    int (*cubinSize)(Program program, std::size_t* bytes) = nullptr;  // from 11.1 on
    int (*cubin)(Program program, char* to) = nullptr;

    bool take(void* library) {
        find(library, "nvrtcGetCUBINSize", cubinSize);
        find(library, "nvrtcGetCUBIN", cubin);
        return find(library, "nvrtcCreateProgram", create) &&
               find(library, "nvrtcCompileProgram", compile) &&
               find(library, "nvrtcDestroyProgram", destroy) &&
               find(library, "nvrtcGetPTXSize", ptxSize) && find(library, "nvrtcGetPTX", ptx);
    }
};

/// Libraries of the process whose file names begin so.
std::vector<std::string> loaded(const char* begin) {
    struct Search {
        const char* begin;
        std::vector<std::string> paths;
    } search{begin, {}};
    dl_iterate_phdr(
        [](dl_phdr_info* library, std::size_t, void* data) {
            auto& found = *static_cast<Search*>(data);
            const std::string path = library->dlpi_name == nullptr ? "" : library->dlpi_name;
            const std::string file = path.substr(path.rfind('/') + 1);
            if (file.rfind(found.begin, 0) == 0) found.paths.push_back(path);
            return 0;
        },
        &search);
    return std::move(search.paths);
}

/// What the process has, else what torch's own library of that name brings, else what is installed.
const Nvrtc* nvrtcOfProcess() {
    std::vector<std::string> paths = loaded("libnvrtc.so");
    for (const std::string& path : loaded("libnvrtc-")) paths.push_back(path);  // renamed by wheels
    for (const std::string& path : loaded("libc10_cuda.so"))
        paths.push_back(path.substr(0, path.rfind('/') + 1) + "libcaffe2_nvrtc.so");
    for (const char* const name : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2",
                                   "libnvrtc.so", "/usr/local/cuda/lib64/libnvrtc.so"})
        paths.push_back(name);
    static Nvrtc nvrtc;
    for (const std::string& path : paths)
        if (void* const library = dlopen(path.c_str(), RTLD_LAZY); library && nvrtc.take(library))
            return &nvrtc;
    return nullptr;
}

/// Empty: it cannot be compiled so. No option: for the oldest GPU that NVRTC knows, in a form that
/// the driver translates.
std::string compileFor(const Nvrtc& nvrtc, const std::string& option) {
    const std::string source = std::string(kDeviceArithmetic) + kDeviceKernel;
    const char* const options[] = {"--device-as-default-execution-space", option.c_str()};
    Nvrtc::Program program = nullptr;
    if (nvrtc.create(&program, source.c_str(), "highwater_sums.cu", 0, nullptr, nullptr) != 0)
        return {};
    std::string image;
    std::size_t bytes = 0;
    const auto size = option.empty() ? nvrtc.ptxSize : nvrtc.cubinSize;
    const auto get = option.empty() ? nvrtc.ptx : nvrtc.cubin;
    if (nvrtc.compile(program, option.empty() ? 1 : 2, options) == 0 &&
        size(program, &bytes) == 0) {
        image.resize(bytes);
        if (get(program, &image[0]) != 0) image.clear();
    }
    nvrtc.destroy(&program);
    return image;
}

/// CUDA's own name of a stream. From torch 2.10 or so on a stream tells.
template <typename Stream>
auto handleOf(const Stream& stream, int) -> decltype(stream.native_handle()) {
    return stream.native_handle();
}
template <typename Stream>
void* handleOf(const Stream& stream, long) {
#ifdef HIGHWATER_CUDA
    return c10::cuda::CUDAStream(stream).stream();
#else
    throw std::runtime_error("this version of torch does not say what its streams are");
#endif
}

/// The thread works in a context, and what it calls does not disturb a graph that is captured.
class InContext {
public:
    InContext(const CudaDriver& driver, CudaDriver::Handle context)
        : driver_(driver), result_(driver.ctxPushCurrent(context)) {
        if (result_ == 0) driver_.threadExchangeStreamCaptureMode(&mode_);
    }
    ~InContext() {
        if (result_ != 0) return;
        driver_.threadExchangeStreamCaptureMode(&mode_);
        CudaDriver::Handle context = nullptr;
        driver_.ctxPopCurrent(&context);
    }
    InContext(const InContext&) = delete;
    InContext& operator=(const InContext&) = delete;
    int result() const { return result_; }

private:
    const CudaDriver& driver_;
    int mode_ = kRelaxed;
    const int result_;
};

}  // namespace

const CudaDriver* CudaDriver::ofProcess() {
    static CudaDriver driver;
    static const bool found = [] {
        void* const library = dlopen("libcuda.so.1", RTLD_LAZY);
        return library != nullptr && find(library, "cuDeviceGet", driver.deviceGet) &&
               find(library, "cuDeviceGetAttribute", driver.deviceGetAttribute) &&
               find(library, "cuDevicePrimaryCtxRetain", driver.devicePrimaryCtxRetain) &&
               find(library, "cuCtxPushCurrent_v2", driver.ctxPushCurrent) &&
               find(library, "cuCtxPopCurrent_v2", driver.ctxPopCurrent) &&
               find(library, "cuThreadExchangeStreamCaptureMode",
                    driver.threadExchangeStreamCaptureMode) &&
               find(library, "cuStreamIsCapturing", driver.streamIsCapturing) &&
               find(library, "cuModuleLoadData", driver.moduleLoadData) &&
               find(library, "cuModuleGetFunction", driver.moduleGetFunction) &&
               find(library, "cuMemAlloc_v2", driver.memAlloc) &&
               find(library, "cuMemsetD8Async", driver.memsetD8Async) &&
               find(library, "cuLaunchKernel", driver.launchKernel) &&
               find(library, "cuMemcpyDtoHAsync_v2", driver.memcpyDtoHAsync) &&
               find(library, "cuStreamSynchronize", driver.streamSynchronize);
    }();
    return found ? &driver : nullptr;
}

std::string compileDeviceSums(int capability, std::string& why) {
    static const Nvrtc* const nvrtc = nvrtcOfProcess();
    if (nvrtc == nullptr) {
        why = "NVRTC, which torch for CUDA brings, was not found";
        return {};
    }
    std::string image;
    if (nvrtc->cubinSize != nullptr && nvrtc->cubin != nullptr)
        image = compileFor(*nvrtc, "--gpu-architecture=sm_" + std::to_string(capability));
    if (image.empty()) image = compileFor(*nvrtc, "");
    if (image.empty()) why = "NVRTC cannot compile the kernel of the sums";
    return image;
}

bool DeviceSums::fail(const std::string& why) {
    why_ = "what is recomputed on a GPU is not compared with what was dropped: " + why;
    return false;
}

/// Without memory for it, it is tried again the next time.
bool DeviceSums::worked(int result, const char* call) {
    if (result == 0) return true;
    if (result != kOutOfMemory) fail(std::string(call) + " failed with " + std::to_string(result));
    return false;
}

DeviceSums::Device& DeviceSums::deviceAt(int index) {
    for (Device& device : devices_)
        if (device.index == index) return device;
    devices_.emplace_back();
    devices_.back().index = index;
    return devices_.back();
}

/// In its context: the kernel, and room for the sums.
bool DeviceSums::prepare(Device& device) {
    const CudaDriver& cuda = *driver_;
    if (device.function == nullptr) {
        int ordinal = 0, major = 0, minor = 0;
        if (!worked(cuda.deviceGet(&ordinal, device.index), "cuDeviceGet") ||
            !worked(cuda.deviceGetAttribute(&major, kMajor, ordinal), "cuDeviceGetAttribute") ||
            !worked(cuda.deviceGetAttribute(&minor, kMinor, ordinal), "cuDeviceGetAttribute"))
            return false;
        std::string why;
        if (device.image.empty()) device.image = compile_(10 * major + minor, why);
        if (device.image.empty()) return fail(why);
        CudaDriver::Handle module = nullptr;
        if (!worked(cuda.moduleLoadData(&module, device.image.c_str()), "cuModuleLoadData") ||
            !worked(cuda.moduleGetFunction(&device.function, module, "hwSum"),
                    "cuModuleGetFunction"))
            return false;
        device.image.clear();
    }
    return device.sums != 0 || worked(cuda.memAlloc(&device.sums, kBytesOfSums), "cuMemAlloc");
}

/// What comes on the stream comes after what was queued before; the step's sums begin at 0.
bool DeviceSums::follow(Device& device, const c10::Stream& stream, CudaDriver::Handle handle) {
    if (device.stream && *device.stream != stream) Streams::letWait(stream, *device.stream);
    device.stream = stream;
    if (!device.zeroed)
        device.zeroed =
            worked(driver_->memsetD8Async(device.sums, 0, kBytesOfSums, handle), "cuMemsetD8Async");
    return device.zeroed;
}

template <typename Work>
bool DeviceSums::on(const c10::Stream& stream, const Work& work) {
    if (!why_.empty()) return false;
    if (driver_ == nullptr) driver_ = CudaDriver::ofProcess();
    if (driver_ == nullptr) return fail("CUDA's driver was not found");
    try {
        const CudaDriver::Handle handle = stream.id() == 0 ? nullptr : handleOf(stream, 0);
        Device& device = deviceAt(stream.device_index());
        int ordinal = 0;
        if (device.context == nullptr &&
            (!worked(driver_->deviceGet(&ordinal, device.index), "cuDeviceGet") ||
             !worked(driver_->devicePrimaryCtxRetain(&device.context, ordinal),
                     "cuDevicePrimaryCtxRetain")))
            return false;
        const InContext context(*driver_, device.context);
        if (!worked(context.result(), "cuCtxPushCurrent")) return false;
        int capturing = 0;
        const int result = driver_->streamIsCapturing(handle, &capturing);
        if (capturing != 0 || (result >= kFirstOfCapture && result <= kLastOfCapture)) return false;
        return worked(result, "cuStreamIsCapturing") && prepare(device) &&
               follow(device, stream, handle) && work(device, handle);
    } catch (const std::exception& error) {
        return fail(error.what());
    }
}

bool DeviceSums::queue(Device& device, const c10::StorageImpl& storage, CudaDriver::Handle stream,
                       std::uint64_t sum) {
    const void* data = storage.data_ptr().get();
    unsigned long long bytes = storage.nbytes();
    CudaDriver::Address result = device.sums + sum * sizeof(std::uint64_t);
    void* parameters[] = {&data, &bytes, &result};
    const std::uint64_t wanted = bytes / (sizeof(std::uint64_t) * kThreads * kWordsOfThread);
    const auto blocks =
        static_cast<unsigned>(std::min(kMostBlocks, std::max<std::uint64_t>(1, wanted)));
    return worked(driver_->launchKernel(device.function, blocks, 1, 1, kThreads, 1, 1, 0, stream,
                                        parameters, nullptr),
                  "cuLaunchKernel");
}

void DeviceSums::beginStep() {
    for (Device& device : devices_) {
        device.first = device.next;
        device.zeroed = false;
    }
    comparisons_.clear();
}

std::uint64_t DeviceSums::take(const c10::StorageImpl& storage, const c10::Stream& stream) {
    std::uint64_t number = 0;
    on(stream, [&](Device& device, CudaDriver::Handle handle) {
        const std::uint64_t pair = device.next - device.first;
        if (pair == kMostPairs || !queue(device, storage, handle, 2 * pair)) return false;
        number = device.next++;
        return true;
    });
    return number;
}

bool DeviceSums::compare(std::uint64_t number, const c10::StorageImpl& storage,
                         const c10::Stream& stream) {
    return on(stream, [&](Device& device, CudaDriver::Handle handle) {
        if (number < device.first || number >= device.next) return false;  // of an earlier step
        if (!queue(device, storage, handle, 2 * (number - device.first) + 1)) return false;
        comparisons_.push_back({&device, number});
        return true;
    });
}

std::vector<std::size_t> DeviceSums::differences() {
    std::vector<std::size_t> different;
    for (Device& each : devices_) {
        const bool any = std::any_of(comparisons_.begin(), comparisons_.end(),
                                     [&](const Comparison& one) { return one.device == &each; });
        if (!any) continue;
        std::vector<std::uint64_t> sums(2 * (each.next - each.first));
        const bool there = on(*each.stream, [&](Device& device, CudaDriver::Handle handle) {
            return worked(driver_->memcpyDtoHAsync(sums.data(), device.sums,
                                                   sums.size() * sizeof(std::uint64_t), handle),
                          "cuMemcpyDtoHAsync") &&
                   worked(driver_->streamSynchronize(handle), "cuStreamSynchronize");
        });
        for (std::size_t i = 0; there && i < comparisons_.size(); ++i) {
            const std::uint64_t pair = comparisons_[i].number - each.first;
            if (comparisons_[i].device == &each && sums[2 * pair] != sums[2 * pair + 1])
                different.push_back(i);
        }
    }
    comparisons_.clear();
    std::sort(different.begin(), different.end());
    return different;
}

}  // namespace hw::live::runtime

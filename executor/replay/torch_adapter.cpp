// SPDX-License-Identifier: MIT
#include "executor/replay/torch_adapter.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/scalar_tensor.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/TensorImpl.h>
#include <dlfcn.h>
#include <torch/csrc/api/include/torch/version.h>

#include <cstring>
#include <map>
#include <new>
#include <set>
#include <stdexcept>

#include "executor/replay/cuda_adapter.h"
#include "executor/replay/interpreter.h"

namespace hw::executor::torch {
namespace {

MemoryTracker* installed = nullptr;
bool onGpu = false;

void require(const core::Status& done) {
    if (!done) throw std::runtime_error(done.error().what);
}

void releaseBlock(void* pointer) {
    installed->release(pointer);
}

// Sees oneDNN's scratch too: that goes through raw_allocate, hence raw_deleter.
class TrackedAllocator final : public c10::Allocator {
public:
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 3)
    c10::DataPtr allocate(std::size_t bytes) override {
        return serve(bytes);
    }
    void copy_data(void* to, const void* from, std::size_t count) const override {
        std::memcpy(to, from, count);
    }
#else
    c10::DataPtr allocate(std::size_t bytes) const override {
        return serve(bytes);
    }
#endif
    c10::DeleterFnPtr raw_deleter() const override {
        return &releaseBlock;
    }

private:
    static c10::DataPtr serve(std::size_t bytes) {
        void* pointer = installed->allocate(bytes);
        if (!pointer && bytes > 0) throw std::bad_alloc();
        return {pointer, pointer, &releaseBlock, c10::Device(c10::DeviceType::CPU)};
    }
};

std::set<std::string> allOps() {
    std::set<std::string> names;
    for (const c10::OperatorName& op : c10::Dispatcher::singleton().getAllOpNames())
        names.insert(op.name);
    return names;
}

std::set<std::string>& opsOfLibraries() {
    static std::set<std::string> ops;
    return ops;
}

}  // namespace

c10::Device device() {
    return onGpu ? c10::Device(c10::DeviceType::CUDA, 0) : c10::Device(c10::DeviceType::CPU);
}

void synchronize() {
    if (onGpu) require(cuda::synchronize());
}

void installAllocator(MemoryTracker& tracker) {
    if (onGpu) return cuda::installAllocator(tracker);
    static TrackedAllocator allocator;
    installed = &tracker;
    c10::SetCPUAllocator(&allocator, /*priority=*/200);
}

std::string libtorchVersion() {
    return std::to_string(TORCH_VERSION_MAJOR) + "." + std::to_string(TORCH_VERSION_MINOR);
}

std::vector<std::string> applyEnvironment(const Environment& environment) {
    std::vector<std::string> notes;
    if (environment.threads > 0)
        at::set_num_threads(environment.threads);
    else
        notes.emplace_back("the session does not say how many threads the training used");
    if (environment.mkldnn) at::globalContext().setUserEnabledMkldnn(*environment.mkldnn);
    if (environment.deterministic)
        at::globalContext().setDeterministicAlgorithms(*environment.deterministic,
                                                       /*warn_only=*/true);
    if (const auto dtype = dtypeFromName(environment.defaultDtype))
        c10::set_default_dtype(c10::scalarTypeToTypeMeta(*dtype));
    return notes;
}

core::Status loadLibraries(const std::vector<std::string>& paths) {
    if (paths.empty()) return {};
    const std::set<std::string> before = allOps();
    for (const std::string& path : paths)
        if (dlopen(path.c_str(), RTLD_LAZY | RTLD_GLOBAL) == nullptr) {
            const char* const why = dlerror();
            return core::Error{core::ErrorCode::Target,
                               "cannot load " + path + (why ? std::string(": ") + why : ""),
                               "its module must be built for torch " + libtorchVersion() +
                                   ", which runs the session: see --python"};
        }
    for (const std::string& op : allOps())
        if (!before.contains(op)) opsOfLibraries().insert(op);
    return {};
}

bool cameWithLibrary(const std::string& op) {
    return opsOfLibraries().contains(op);
}

core::Result<c10::OperatorHandle> findOp(const std::string& name, const std::string& overload) {
    const auto handle = c10::Dispatcher::singleton().findSchema({name, overload});
    if (handle) return *handle;
    return core::badInput(
        "libtorch " + libtorchVersion() + " has no op " + name +
            (overload.empty() ? "" : "." + overload),
        "run the session with the executor built for the libtorch it was recorded with");
}

std::optional<c10::ScalarType> dtypeFromName(const std::string& name) {
    static const std::map<std::string, c10::ScalarType> table{{"float32", at::kFloat},
                                                              {"float64", at::kDouble},
                                                              {"float16", at::kHalf},
                                                              {"bfloat16", at::kBFloat16},
                                                              {"int64", at::kLong},
                                                              {"int32", at::kInt},
                                                              {"int16", at::kShort},
                                                              {"int8", at::kChar},
                                                              {"uint8", at::kByte},
                                                              {"bool", at::kBool},
                                                              {"complex64", at::kComplexFloat},
                                                              {"complex128", at::kComplexDouble},
                                                              {"complex32", at::kComplexHalf}};
    const auto at = table.find(name);
    return at == table.end() ? std::nullopt : std::optional(at->second);
}

std::optional<c10::Layout> layoutFromName(const std::string& name) {
    if (name == "strided") return c10::Layout::Strided;
    if (name == "sparse_coo") return c10::Layout::Sparse;
    return std::nullopt;
}

std::optional<c10::MemoryFormat> memoryFormatFromName(const std::string& name) {
    if (name == "contiguous_format") return c10::MemoryFormat::Contiguous;
    if (name == "preserve_format") return c10::MemoryFormat::Preserve;
    if (name == "channels_last") return c10::MemoryFormat::ChannelsLast;
    if (name == "channels_last_3d") return c10::MemoryFormat::ChannelsLast3d;
    return std::nullopt;
}

c10::Storage makeStorage(std::size_t bytes) {
    return c10::Storage(c10::Storage::use_byte_size_t(), bytes,
                        onGpu ? cuda::allocator() : c10::GetCPUAllocator(), /*resizable=*/true);
}

at::Tensor makeView(const c10::Storage& storage, c10::ScalarType dtype, at::IntArrayRef sizes,
                    at::IntArrayRef strides, std::int64_t offset) {
    at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
        c10::Storage(storage),
        c10::DispatchKeySet(onGpu ? c10::DispatchKey::CUDA : c10::DispatchKey::CPU),
        c10::scalarTypeToTypeMeta(dtype));
    tensor.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
    tensor.unsafeGetTensorImpl()->set_storage_offset(offset);
    return tensor;
}

at::Tensor alias(const at::Tensor& tensor) {
    return at::Tensor(tensor.unsafeGetTensorImpl()->shallow_copy_and_detach(
        c10::VariableVersion(0), /*allow_tensor_metadata_change=*/true));
}

at::Tensor wrappedNumber(const c10::Scalar& value) {
    at::Tensor tensor = at::scalar_tensor(value, at::TensorOptions().dtype(value.type()));
    tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
    return tensor;
}

Span<const std::byte> HostView::of(const c10::Storage& storage) {
    const auto* data = static_cast<const std::byte*>(storage.data());
    if (!onGpu) return {data, storage.nbytes()};
    copies_.emplace_back(storage.nbytes());
    require(cuda::toHost(copies_.back(), data));
    return copies_.back();
}

core::Status writeStorage(const c10::Storage& storage,
                          const std::function<core::Status(Span<std::byte>)>& fill) {
    auto* data = static_cast<std::byte*>(const_cast<void*>(storage.data()));
    if (!onGpu) return fill({data, storage.nbytes()});
    std::vector<std::byte> copy(storage.nbytes());
    const core::Status done = fill(copy);
    if (done) require(cuda::toDevice(data, copy));
    return done;
}

TensorBytes HostView::of(const at::Tensor& tensor) {
    TensorBytes bytes;
    bytes.elementBytes = tensor.element_size();
    switch (tensor.scalar_type()) {
        case at::kFloat:
        case at::kComplexFloat:
            bytes.kind = ElementKind::Float;
            break;
        case at::kDouble:
        case at::kComplexDouble:
            bytes.kind = ElementKind::Double;
            break;
        case at::kHalf:
        case at::kComplexHalf:
            bytes.kind = ElementKind::Half;
            break;
        case at::kBFloat16:
            bytes.kind = ElementKind::BFloat16;
            break;
        default:
            break;
    }
    bytes.sizes = tensor.sizes().vec();
    bytes.strides = tensor.strides().vec();
    if (tensor.numel() > 0)
        bytes.data = of(tensor.storage()).data() +
                     tensor.storage_offset() * static_cast<std::int64_t>(bytes.elementBytes);
    return bytes;
}

at::Generator makeGenerator(bool isDefault) {
    if (onGpu) return cuda::makeGenerator(isDefault);
    return isDefault ? at::detail::getDefaultCPUGenerator() : at::detail::createCPUGenerator();
}

core::Status setState(at::Generator& generator, Span<const std::byte> state) {
    try {
        at::Tensor tensor = at::empty({static_cast<std::int64_t>(state.size())}, at::kByte);
        std::memcpy(tensor.data_ptr(), state.data(), state.size());
        generator.set_state(tensor);
        return {};
    } catch (const std::exception&) {
        return core::badInput(
            "the session's generator state does not fit libtorch " + libtorchVersion(),
            "run it with the executor built for the libtorch it was recorded with");
    }
}

std::vector<std::byte> stateOf(at::Generator& generator) {
    const at::Tensor state = generator.get_state();
    const auto* data = static_cast<const std::byte*>(state.data_ptr());
    return {data, data + state.nbytes()};
}

namespace {

template <class Kernel>
core::Status guarded(const Kernel& kernel) {
    try {
        const at::AutoDispatchBelowADInplaceOrView belowAutograd;
        kernel();
        return {};
    } catch (const c10::Error& error) {
        return core::Error{core::ErrorCode::Internal, error.what_without_backtrace(), ""};
    } catch (const std::exception& error) {
        return core::Error{core::ErrorCode::Internal, error.what(), ""};
    }
}

}  // namespace

core::Status call(const c10::OperatorHandle& op, c10::Stack& stack) {
    return guarded([&] { op.callBoxed(stack); });
}

core::Status call(const std::function<void(c10::Stack&)>& kernel, c10::Stack& stack) {
    return guarded([&] { kernel(stack); });
}

}  // namespace hw::executor::torch

namespace hw::executor {

core::Result<MemorySource*> openDevice(Device device) {
    torch::onGpu = device == Device::Cuda;
    if (!torch::onGpu) return &hostMemory();
    if (const core::Status ok = torch::cuda::open(); !ok) return ok.error();
    return &torch::cuda::memory();
}

}  // namespace hw::executor

// SPDX-License-Identifier: MIT
// All that differs between releases of libtorch, and the few calls that reach below its public API.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "executor/replay/memory_tracker.h"
#include "executor/replay/span.h"
#include "executor/replay/step.h"

namespace hw::executor::torch {

c10::Device device();  // that openDevice() chose; the CPU without
/// Makes `tracker` (which must live as long as the process uses tensors) the device's allocator.
void installAllocator(MemoryTracker& tracker);
/// Waits for kernels that still run. Throws when one failed.
void synchronize();
/// Threads, default dtype and flags as captured. Returns notes on what could not be set.
std::vector<std::string> applyEnvironment(const Environment& environment);
std::string libtorchVersion();  // "1.13"

/// Loads libraries of extensions, whose ops come with them. Errors: Target, with the loader's
/// words.
core::Status loadLibraries(const std::vector<std::string>& paths);
/// Whether it came with one of them.
bool cameWithLibrary(const std::string& op);

/// Errors: BadInput when this libtorch has no such op.
core::Result<c10::OperatorHandle> findOp(const std::string& name, const std::string& overload);

std::optional<c10::ScalarType> dtypeFromName(const std::string& name);  // "float32"
std::optional<c10::Layout> layoutFromName(const std::string& name);
std::optional<c10::MemoryFormat> memoryFormatFromName(const std::string& name);

/// A storage of `bytes` bytes from the installed allocator.
c10::Storage makeStorage(std::size_t bytes);
at::Tensor makeView(const c10::Storage& storage, c10::ScalarType dtype, at::IntArrayRef sizes,
                    at::IntArrayRef strides, std::int64_t offset);
/// Another tensor on the same storage with the metadata of its own, outside of autograd.
at::Tensor alias(const at::Tensor& tensor);
/// A Python number where a tensor is expected: it takes part in type promotion as a number does.
at::Tensor wrappedNumber(const c10::Scalar& value);

/// What the host reads of storages and tensors: their own memory on the CPU, on a GPU copies that
/// live as long as this does. Throws when a copy fails.
class HostView {
public:
    Span<const std::byte> of(const c10::Storage& storage);
    TensorBytes of(const at::Tensor& tensor);

private:
    std::deque<std::vector<std::byte>> copies_;
};

/// Lets `fill` write the bytes of a storage (on a GPU: a copy that is zero first).
/// Errors: those of `fill`. Throws when a copy fails.
core::Status writeStorage(const c10::Storage& storage,
                          const std::function<core::Status(Span<std::byte>)>& fill);

/// A fresh generator of the device, or its default one.
at::Generator makeGenerator(bool isDefault);
/// Errors: BadInput when the state does not fit this libtorch.
core::Status setState(at::Generator& generator, Span<const std::byte> state);
std::vector<std::byte> stateOf(at::Generator& generator);

/// Calls a kernel below autograd; the results replace the arguments on the stack.
/// Errors: Internal with the kernel's own message.
core::Status call(const c10::OperatorHandle& op, c10::Stack& stack);
/// The same of a kernel of ours that calls others.
core::Status call(const std::function<void(c10::Stack&)>& kernel, c10::Stack& stack);

}  // namespace hw::executor::torch

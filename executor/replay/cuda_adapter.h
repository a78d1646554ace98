// SPDX-License-Identifier: MIT
// All that knows CUDA. In an executor that is built against a libtorch without CUDA the same
// functions say so.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cstddef>

#include "core/base/result.h"
#include "executor/replay/memory_tracker.h"
#include "executor/replay/span.h"

namespace hw::executor::torch::cuda {

/// Whether this executor is built against a libtorch with CUDA.
bool built();
/// Finds the first GPU, starts CUDA and makes kernels deterministic. To be called before anything
/// touches the GPU. Errors: Usage, with the reason, where there is no GPU that can be used.
core::Status open();
/// The GPU's memory (cudaMalloc), aligned to 512 bytes. After open().
MemorySource& memory();
/// Makes `tracker` (which must live as long as the process uses tensors) the allocator of the GPU,
/// for all streams: the executor uses the default one only.
void installAllocator(MemoryTracker& tracker);
c10::Allocator* allocator();
at::Generator makeGenerator(bool isDefault);
/// Waits until the GPU has done all that it was asked for. Errors: Internal with CUDA's message.
core::Status synchronize();

/// Copies between the host and the GPU, in order with the kernels.
/// Errors: Internal with CUDA's message.
core::Status toHost(Span<std::byte> into, const void* from);
core::Status toDevice(void* into, Span<const std::byte> from);

}  // namespace hw::executor::torch::cuda

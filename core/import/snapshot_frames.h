// SPDX-License-Identifier: MIT
// Call stacks of torch's snapshots as a reader wants them: without the frames that every allocation
// has, C++ names without their parameters, and the operator that asked for the memory innermost.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/import/pickle_reader.h"
#include "core/session/rows.h"

namespace hw::core {

/// The frames of a stack, the outermost first. The pickle has the innermost first. Left out are the
/// frames of the unwinder, the allocator and the interpreter, and what an operator calls to get its
/// memory: "aten::mul" is the innermost frame then. At most kMostSnapshotFrames, the innermost
/// ones.
std::vector<SourceFrameRow> snapshotFrames(const PickleDocument& document, PickleRef frames);

inline constexpr std::size_t kMostSnapshotFrames = 256;

/// "at::native::resize_cuda_" of "at::native::resize_cuda_(at::Tensor const&, long)".
std::string shortCppName(std::string_view name);

/// "aten::mul_Tensor" of "at::_ops::mul_Tensor::call(at::Tensor const&, …)"; empty for another
/// function. An operator's overload is part of that name.
std::string operatorOf(std::string_view name);

}  // namespace hw::core

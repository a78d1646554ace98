// SPDX-License-Identifier: MIT
// Implementations that the executor has beside the captured ones, and the step under a choice of
// them. Free of libtorch; kernels.h has what runs.
#pragma once

#include <string_view>
#include <vector>

#include "core/plan/implementations.h"
#include "executor/replay/step.h"

namespace hw::executor {

// Results to the bit those of the captured implementation:
/// A convolution, or the input's gradient of one, over one image of the batch after the other. The
/// layouts that the kernel library wants are made for one image at a time.
inline constexpr std::string_view kPerSample = "per-sample";
/// An element-wise op writes its result over its first argument.
inline constexpr std::string_view kInPlace = "in-place";
/// A ReLU keeps one bit an element, which is all that its gradient reads.
inline constexpr std::string_view kMask = "mask";
/// The gradient of a max pooling reads the indices, and of the pooled input the shape only.
inline constexpr std::string_view kIndicesOnly = "indices-only";

// Sums in another order, so results with other last bits:
/// A convolution by 1 x 1 through oneDNN where libtorch takes its own product of matrices, which it
/// does with one thread.
inline constexpr std::string_view kOneDnn = "onednn";
/// A convolution without oneDNN: libtorch's own, by columns and a product of matrices.
inline constexpr std::string_view kColumns = "im2col";

/// Whether an implementation of that name has the captured one's results to the bit.
bool keepsBits(std::string_view name);

/// All that the executor can run in place of ops of `step`, as captured, without figures.
std::vector<core::Implementation> offeredImplementations(const Step& step);

/// The step with the graph under `choice`, whose entries `menu` has. Errors: BadInput for an
/// implementation that is not offered, or offered with another flow of data, and those of
/// core::applyImplementations().
core::Result<Step> stepUnder(const Step& step, const core::Menu& menu,
                             const core::ImplementationChoice& choice);

}  // namespace hw::executor

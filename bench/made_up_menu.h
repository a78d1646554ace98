// SPDX-License-Identifier: MIT
#pragma once

#include "core/plan/implementations.h"

namespace hw::bench {

/// Implementations for the ops of a training step, with figures that are made up, not measured:
/// - products (convolution, linear, mm, bmm, addmm and their gradients): 0.75 of the captured time
///   in a workspace as large as the outputs, 0.65 in one four times as large, and without any
///   workspace 1.25 where the captured one has some;
/// - normalization (batch_norm, native_layer_norm): output-activated, the gradient takes 1.1 times
///   as long;
/// - relu: intermediate-activated, one bit for each four bytes of the result, op and gradient take
///   1.1 times as long;
/// - relu that makes a new storage: in place, at the captured time.
core::Menu madeUpMenu(const core::TrainingGraph& graph);

/// What the figures are, in one line, to be printed with every result.
inline constexpr const char* kMadeUpFigures =
    "the menu's figures are made up: products at 0.75 / 0.65 of the time in 1 / 4 times the "
    "outputs' bytes of workspace; normalization from its output, its gradient at 1.1 of the time; "
    "relu with a mask of 1/32 of the bytes at 1.1 of the time; relu in place";

}  // namespace hw::bench

// SPDX-License-Identifier: MIT
// One bit an element of a ReLU's result: set unless the element is at most 0, so for NaN too, as
// aten::threshold_backward compares.
#pragma once

#include <cstddef>

#include "executor/replay/span.h"

namespace hw::executor {

/// Bit i % 8 of byte i / 8 for element i; `bits` has a byte for each 8 elements that are begun.
void packPositive(Span<const float> result, Span<std::byte> bits);

/// `into`[i] is `gradient`[i] where bit i is set, else +0. `into` may be `gradient`.
void maskGradient(Span<const std::byte> bits, Span<const float> gradient, Span<float> into);

}  // namespace hw::executor

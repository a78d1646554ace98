// SPDX-License-Identifier: MIT
// One bit an element of a ReLU's result: set unless the element is at most 0, so for NaN too, as
// aten::threshold_backward compares.
#pragma once

#include <cstddef>
#include <span>

namespace hw::executor {

/// Bit i % 8 of byte i / 8 for element i; `bits` has a byte for each 8 elements that are begun.
void packPositive(std::span<const float> result, std::span<std::byte> bits);

/// `into`[i] is `gradient`[i] where bit i is set, else +0. `into` may be `gradient`.
void maskGradient(std::span<const std::byte> bits, std::span<const float> gradient,
                  std::span<float> into);

}  // namespace hw::executor

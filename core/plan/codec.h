// SPDX-License-Identifier: MIT
// The lossless encodings that a plan may name (DESIGN: `e` and `d` actions).
#pragma once

#include <string_view>

namespace hw::core {

/// A dropout mask: every element is 0 or one common value, which the encoded form holds in its
/// first 8 bytes; one bit an element follows. Decoding gives the same bytes back: any op may read
/// it.
inline constexpr std::string_view kMaskCodec = "mask1";

/// The output of a ReLU: one bit an element, set unless the element is at most 0. Decoding gives 1
/// where the bit is set (for what was positive or not a number) and 0 elsewhere: only ops that
/// compare the elements with 0 may read it, that is aten::threshold_backward as its second input.
inline constexpr std::string_view kSignCodec = "sign1";

/// 64-bit integers from 0 to 2^32 - 1, such as the indices of a max pooling, in 32 bits each.
/// Decoding gives the same bytes back: any op may read it.
inline constexpr std::string_view kIndexCodec = "index32";

}  // namespace hw::core

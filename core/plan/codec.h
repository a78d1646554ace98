// SPDX-License-Identifier: MIT
// The lossless encodings that a plan may name (docs/plan-format.md: `e` and `d`).
#pragma once

#include <string_view>

#include "core/base/units.h"
#include "core/graph/training_graph.h"

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

/// What the judge charges for one encoding or decoding of a storage of `plain` bytes: the time of
/// the executor's kernels on one core of a current CPU. Those depend on the number of elements,
/// which the encoded form tells, whatever their width: 1.5 ns a bit, 1 ns an index. A codec that is
/// not known here counts by the bytes that it reads and writes.
constexpr Nanoseconds codecTime(std::string_view codec, Bytes plain, Bytes encoded) {
    constexpr std::int64_t kNsPerByteOfBits = 12, kIndexBytes = 4, kBytesPerNs = 2;
    if (codec == kMaskCodec || codec == kSignCodec)
        return Nanoseconds(encoded.count() * kNsPerByteOfBits);
    if (codec == kIndexCodec) return Nanoseconds(encoded.count() / kIndexBytes);
    return Nanoseconds((plain + encoded).count() / kBytesPerNs);
}

/// True when `op` may read storage `s` as `codec` decodes it.
bool codecServes(const TrainingGraph& graph, std::string_view codec, OpIndex op, StorageIndex s);

}  // namespace hw::core

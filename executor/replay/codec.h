// SPDX-License-Identifier: MIT
// The kernels behind the `e` and `d` actions of a plan (core/plan/codec.h).
#pragma once

#include <cstddef>
#include <string_view>

#include "core/base/result.h"
#include "executor/replay/checksum.h"
#include "executor/replay/span.h"

namespace hw::executor {

/// What a storage holds, throughout.
struct ElementType {
    std::size_t bytes = 1;  // of one element
    ElementKind kind = ElementKind::Other;
};

/// Whether an executor knows a codec of that name.
bool isCodec(std::string_view name);

/// Encodes `from` into `into`; what is left of `into` is set to 0.
/// Errors: BadInput for a codec that does not exist or does not take such elements, and when the
/// encoded form needs more bytes; Verification when the elements are not what the codec keeps.
core::Status encode(std::string_view codec, ElementType elements, Span<const std::byte> from,
                    Span<std::byte> into);

/// Fills `into` from what encode() made of as many bytes with the same codec and element type.
/// Errors: as encode().
core::Status decode(std::string_view codec, ElementType elements, Span<const std::byte> from,
                    Span<std::byte> into);

}  // namespace hw::executor

// SPDX-License-Identifier: MIT
// Checksums over the elements of tensors that may be strided.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "executor/replay/span.h"

namespace hw::executor {

enum class ElementKind : std::uint8_t {
    Other,
    Half,
    BFloat16,
    Float,
    Double
};  // complex: of its parts

/// The elements of a tensor in memory. Strides count elements and may be 0 or negative.
struct TensorBytes {
    const std::byte* data = nullptr;  // first element; nullptr only when there is none
    std::size_t elementBytes = 1;
    ElementKind kind = ElementKind::Other;
    std::vector<std::int64_t> sizes, strides;

    std::int64_t elements() const;
};

/// 64-bit hash of a range of bytes: order-sensitive, not cryptographic.
std::uint64_t checksum(Span<const std::byte> bytes, std::uint64_t seed = 0);
/// The same over the elements of a tensor, its sizes included. Equal strides give equal checksums;
/// a dense tensor is read in the order of its memory.
std::uint64_t checksum(const TensorBytes& tensor);
/// The elements of a tensor one after the other; those of a dense one in the order of its memory.
std::vector<std::byte> elementsOf(const TensorBytes& tensor);
/// The value of one real floating element; none when it is of another kind or width.
std::optional<double> numberOf(Span<const std::byte> bytes, ElementKind kind);
/// Whether a floating element is infinite or not a number.
bool hasNonfinite(const TensorBytes& tensor);

}  // namespace hw::executor

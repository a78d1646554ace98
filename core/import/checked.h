// SPDX-License-Identifier: MIT
// Arithmetic on figures that a file claims: what does not fit throws, nothing wraps unnoticed.
#pragma once

#include <cstdint>
#include <stdexcept>

namespace hw::core {

inline std::int64_t checkedAdd(std::int64_t a, std::int64_t b) {
    std::int64_t sum = 0;
    if (__builtin_add_overflow(a, b, &sum)) throw std::invalid_argument("sizes add up to too much");
    return sum;
}
inline std::int64_t checkedMultiply(std::int64_t a, std::int64_t b) {
    std::int64_t product = 0;
    if (__builtin_mul_overflow(a, b, &product))
        throw std::invalid_argument("a number is too large");
    return product;
}
/// For addresses, which are unsigned.
inline std::int64_t wrappingAdd(std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

}  // namespace hw::core

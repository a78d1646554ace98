// SPDX-License-Identifier: MIT
#include "executor/replay/relu_mask.h"

#include <array>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace hw::executor {
namespace {

constexpr std::size_t kBits = 8;
using Lanes = std::array<std::uint32_t, kBits>;

// All ones for every bit of a byte that is set.
constexpr auto kLanes = [] {
    std::array<Lanes, 256> table{};
    for (std::size_t byte = 0; byte < table.size(); ++byte)
        for (std::size_t j = 0; j < kBits; ++j)
            table[byte][j] = (byte >> j & 1) != 0 ? ~std::uint32_t{0} : 0;
    return table;
}();

unsigned packed(const float* from, std::size_t count) {
    unsigned bits = 0;
    for (std::size_t j = 0; j < count; ++j) bits |= (from[j] <= 0 ? 0u : 1u) << j;
    return bits;
}

void masked(const Lanes& lanes, const float* from, float* into, std::size_t count) {
    for (std::size_t j = 0; j < count; ++j) {
        std::uint32_t word = 0;
        std::memcpy(&word, from + j, sizeof word);
        word &= lanes[j];
        std::memcpy(into + j, &word, sizeof word);
    }
}

#if defined(__SSE2__)
// "Not less or equal" holds for NaN, as it is to.
unsigned packedEight(const float* from) {
    const __m128 zero = _mm_setzero_ps();
    const int low = _mm_movemask_ps(_mm_cmpnle_ps(_mm_loadu_ps(from), zero));
    const int high = _mm_movemask_ps(_mm_cmpnle_ps(_mm_loadu_ps(from + 4), zero));
    return static_cast<unsigned>(low | high << 4);
}

void maskedEight(const Lanes& lanes, const float* from, float* into) {
    const auto half = [&](std::size_t j) {
        const __m128i lane = _mm_loadu_si128(reinterpret_cast<const __m128i*>(lanes.data() + j));
        _mm_storeu_ps(into + j, _mm_and_ps(_mm_loadu_ps(from + j), _mm_castsi128_ps(lane)));
    };
    half(0);
    half(4);
}
#else
unsigned packedEight(const float* from) {
    return packed(from, kBits);
}

void maskedEight(const Lanes& lanes, const float* from, float* into) {
    masked(lanes, from, into, kBits);
}
#endif

}  // namespace

void packPositive(Span<const float> result, Span<std::byte> bits) {
    const std::size_t whole = result.size() / kBits * kBits;
    for (std::size_t i = 0; i < whole; i += kBits)
        bits[i / kBits] = static_cast<std::byte>(packedEight(result.data() + i));
    if (whole < result.size())
        bits[whole / kBits] =
            static_cast<std::byte>(packed(result.data() + whole, result.size() - whole));
}

void maskGradient(Span<const std::byte> bits, Span<const float> gradient, Span<float> into) {
    const auto lanes = [&](std::size_t i) -> const Lanes& {
        return kLanes[std::to_integer<std::size_t>(bits[i / kBits])];
    };
    const std::size_t whole = gradient.size() / kBits * kBits;
    for (std::size_t i = 0; i < whole; i += kBits)
        maskedEight(lanes(i), gradient.data() + i, into.data() + i);
    if (whole < gradient.size())
        masked(lanes(whole), gradient.data() + whole, into.data() + whole, gradient.size() - whole);
}

}  // namespace hw::executor

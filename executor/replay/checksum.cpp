// SPDX-License-Identifier: MIT
#include "executor/replay/checksum.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "core/base/bits.h"

namespace hw::executor {
namespace {

constexpr std::uint64_t kOdd1 = 0x9e3779b97f4a7c15ull, kOdd2 = 0xd6e8feb86659fd93ull;

std::uint64_t mix(std::uint64_t state, std::uint64_t word) {
    return std::rotl((state ^ word) * kOdd1, 29) + kOdd2;
}

std::uint64_t finish(std::uint64_t h) {
    h = (h ^ (h >> 32)) * kOdd2;
    return (h ^ (h >> 29)) * kOdd1 ^ (h >> 32);
}

std::uint64_t load(const std::byte* from, std::size_t count) {
    std::uint64_t word = 0;
    std::memcpy(&word, from, count);
    return word;
}

// Calls visit(pointer, bytes) for the longest contiguous runs of a tensor, largest stride
// outermost.
template <class Visit>
void forEachRun(const TensorBytes& tensor, Visit visit) {
    if (tensor.elements() == 0) return;
    std::vector<std::size_t> dims;
    for (std::size_t d = 0; d < tensor.sizes.size(); ++d)
        if (tensor.sizes[d] != 1) dims.push_back(d);
    std::stable_sort(dims.begin(), dims.end(), [&](std::size_t a, std::size_t b) {
        return std::abs(tensor.strides[a]) > std::abs(tensor.strides[b]);
    });
    std::int64_t run = 1;
    while (!dims.empty() && tensor.strides[dims.back()] == run) {
        run *= tensor.sizes[dims.back()];
        dims.pop_back();
    }
    const auto width = static_cast<std::int64_t>(tensor.elementBytes);
    std::vector<std::int64_t> at(dims.size(), 0);
    std::int64_t offset = 0;
    for (;;) {
        visit(tensor.data + offset * width, static_cast<std::size_t>(run * width));
        std::size_t d = dims.size();
        for (; d > 0; --d) {
            const std::size_t dim = dims[d - 1];
            offset += tensor.strides[dim];
            if (++at[d - 1] < tensor.sizes[dim]) break;
            offset -= tensor.strides[dim] * tensor.sizes[dim];
            at[d - 1] = 0;
        }
        if (d == 0) return;
    }
}

template <class Word>
bool anyWithExponent(const std::byte* data, std::size_t bytes, Word exponent) {
    for (std::size_t i = 0; i + sizeof(Word) <= bytes; i += sizeof(Word)) {
        Word word;
        std::memcpy(&word, data + i, sizeof word);
        if ((word & exponent) == exponent) return true;
    }
    return false;
}

}  // namespace

std::int64_t TensorBytes::elements() const {
    return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}

std::uint64_t checksum(Span<const std::byte> bytes, std::uint64_t seed) {
    // Four lanes hide the latency of the multiplication.
    std::array<std::uint64_t, 4> lanes{seed, seed ^ kOdd1, seed ^ kOdd2, ~seed};
    std::size_t i = 0;
    for (; i + 32 <= bytes.size(); i += 32)
        for (std::size_t lane = 0; lane < 4; ++lane)
            lanes[lane] = mix(lanes[lane], load(bytes.data() + i + 8 * lane, 8));
    for (std::size_t lane = 0; i < bytes.size(); i += 8, ++lane)
        lanes[lane % 4] = mix(lanes[lane % 4],
                              load(bytes.data() + i, std::min<std::size_t>(8, bytes.size() - i)));
    std::uint64_t state = bytes.size();
    for (const std::uint64_t lane : lanes) state = mix(state, lane);
    return finish(state);
}

std::uint64_t checksum(const TensorBytes& tensor) {
    std::uint64_t state = tensor.elementBytes;
    for (const std::int64_t size : tensor.sizes)
        state = mix(state, static_cast<std::uint64_t>(size));
    forEachRun(tensor, [&](const std::byte* data, std::size_t bytes) {
        state = bytes <= 8 ? mix(state, load(data, bytes))
                           : checksum(Span<const std::byte>(data, bytes), state);
    });
    return finish(state);
}

std::vector<std::byte> elementsOf(const TensorBytes& tensor) {
    std::vector<std::byte> bytes;
    forEachRun(tensor, [&](const std::byte* data, std::size_t count) {
        bytes.insert(bytes.end(), data, data + count);
    });
    return bytes;
}

std::optional<double> numberOf(Span<const std::byte> bytes, ElementKind kind) {
    const std::uint64_t word = bytes.size() <= 8 ? load(bytes.data(), bytes.size()) : 0;
    if (kind == ElementKind::Double && bytes.size() == 8) return core::bitCast<double>(word);
    const auto low = static_cast<std::uint32_t>(word);
    if (kind == ElementKind::Float && bytes.size() == 4) return core::bitCast<float>(low);
    if (bytes.size() != 2) return std::nullopt;
    if (kind == ElementKind::BFloat16) return core::bitCast<float>(low << 16);
    if (kind != ElementKind::Half) return std::nullopt;
    const double sign = (low & 0x8000) != 0 ? -1 : 1;
    const int exponent = static_cast<int>(low >> 10 & 0x1f);
    const double fraction = low & 0x3ff;
    if (exponent == 0) return sign * std::ldexp(fraction, -24);
    if (exponent < 31) return sign * std::ldexp(fraction + 1024, exponent - 25);
    return fraction == 0 ? sign * std::numeric_limits<double>::infinity()
                         : std::numeric_limits<double>::quiet_NaN();
}

bool hasNonfinite(const TensorBytes& tensor) {
    bool found = false;
    forEachRun(tensor, [&](const std::byte* data, std::size_t bytes) {
        switch (tensor.kind) {
            case ElementKind::Other:
                break;
            case ElementKind::Half:
                found = found || anyWithExponent<std::uint16_t>(data, bytes, 0x7c00);
                break;
            case ElementKind::BFloat16:
                found = found || anyWithExponent<std::uint16_t>(data, bytes, 0x7f80);
                break;
            case ElementKind::Float:
                found = found || anyWithExponent<std::uint32_t>(data, bytes, 0x7f800000);
                break;
            case ElementKind::Double:
                found = found || anyWithExponent<std::uint64_t>(data, bytes, 0x7ff0000000000000ull);
                break;
        }
    });
    return found;
}

}  // namespace hw::executor

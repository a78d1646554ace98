// SPDX-License-Identifier: MIT
// The loops of the codecs that a plan may name (core/plan/codec.h), for the replay and for the
// runtime in a training program, which is compiled with the framework's language standard: C++17.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace hw::executor::codecs {

constexpr std::size_t kBits = 8;
constexpr std::size_t kValueBytes = 8;  // the common value of a mask's set elements

constexpr std::size_t bitBytes(std::size_t elements) {
    return (elements + kBits - 1) / kBits;
}

template <class Word>
Word load(const std::byte* from, std::size_t i) {
    Word word;
    std::memcpy(&word, from + i * sizeof word, sizeof word);
    return word;
}

template <class Word>
void store(std::byte* into, std::size_t i, Word word) {
    std::memcpy(into + i * sizeof word, &word, sizeof word);
}

/// Bit i of `into` is predicate(element i). Whole bytes first: the inner loop has a fixed length.
template <class Word, class Predicate>
void packBits(const std::byte* from, std::size_t count, std::byte* into, Predicate predicate) {
    for (std::size_t i = 0; i < count; i += kBits) {
        unsigned bits = 0;
        const std::size_t end = std::min(kBits, count - i);
        if (end == kBits)
            for (std::size_t j = 0; j < kBits; ++j)
                bits |= static_cast<unsigned>(predicate(load<Word>(from, i + j))) << j;
        else
            for (std::size_t j = 0; j < end; ++j)
                bits |= static_cast<unsigned>(predicate(load<Word>(from, i + j))) << j;
        into[i / kBits] = static_cast<std::byte>(bits);
    }
}

template <class Word>
void unpackBits(const std::byte* from, std::size_t count, std::byte* into, Word set) {
    for (std::size_t i = 0; i < count; ++i) {
        const unsigned bit = std::to_integer<unsigned>(from[i / kBits]) >> (i % kBits) & 1u;
        store<Word>(into, i, bit != 0 ? set : Word{0});
    }
}

/// False where the elements have more than two values, one of them 0.
template <class Word>
bool encodeMask(const std::byte* from, std::size_t count, std::byte* into) {
    Word value = 0, other = 0;
    for (std::size_t i = 0; i < count && value == 0; ++i) value = load<Word>(from, i);
    for (std::size_t i = 0; i < count; ++i) {
        const Word word = load<Word>(from, i);
        other |= word == 0 ? Word{0} : static_cast<Word>(word ^ value);
    }
    if (other != 0) return false;
    store<std::uint64_t>(into, 0, value);
    packBits<Word>(from, count, into + kValueBytes, [](Word word) { return word != 0; });
    return true;
}

template <class Word>
void decodeMask(const std::byte* from, std::size_t count, std::byte* into) {
    unpackBits<Word>(from + kValueBytes, count, into,
                     static_cast<Word>(load<std::uint64_t>(from, 0)));
}

/// A floating-point format, for what the codec asks of it: the bits of infinity, and those of 1.
template <class Word>
void encodeSign(const std::byte* from, std::size_t count, std::byte* into, Word infinity) {
    constexpr Word kMagnitude = static_cast<Word>(~Word{0}) >> 1;
    packBits<Word>(from, count, into, [infinity](Word word) {
        const Word magnitude = word & kMagnitude;
        const bool negative = word != magnitude, notANumber = magnitude > infinity;
        return notANumber || (!negative && magnitude != 0);
    });
}

/// False where an index does not fit 32 bits.
inline bool encodeIndices(const std::byte* from, std::size_t count, std::byte* into) {
    std::uint64_t high = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const auto index = load<std::uint64_t>(from, i);
        high |= index >> 32;
        store<std::uint32_t>(into, i, static_cast<std::uint32_t>(index));
    }
    return high == 0;
}

inline void decodeIndices(const std::byte* from, std::size_t count, std::byte* into) {
    for (std::size_t i = 0; i < count; ++i)
        store<std::uint64_t>(into, i, load<std::uint32_t>(from, i));
}

}  // namespace hw::executor::codecs

// SPDX-License-Identifier: MIT
#include "executor/replay/codec.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include "core/plan/codec.h"

namespace hw::executor {
namespace {

using core::Error;
using core::ErrorCode;
using core::Status;
using In = std::span<const std::byte>;
using Out = std::span<std::byte>;

constexpr std::size_t kValueBytes = 8;  // the common value of a mask's set elements
constexpr std::size_t kBits = 8;

constexpr std::size_t bitBytes(std::size_t elements) {
    return (elements + kBits - 1) / kBits;
}

Error notFor(std::string_view codec) {
    return core::badInput("the codec '" + std::string(codec) + "' does not take such elements",
                          "make the plan again");
}

Error lossy(const std::string& what) {
    return {ErrorCode::Verification, what, "make the plan again, with the option encodings=off"};
}

template <class Word>
Word load(In from, std::size_t i) {
    Word word;
    std::memcpy(&word, from.data() + i * sizeof word, sizeof word);
    return word;
}

template <class Word>
void store(Out into, std::size_t i, Word word) {
    std::memcpy(into.data() + i * sizeof word, &word, sizeof word);
}

// Bit i of `into` is predicate(element i). Whole bytes first: the inner loop has a fixed length.
template <class Word, class Predicate>
void packBits(In from, Out into, Predicate predicate) {
    const std::size_t count = from.size() / sizeof(Word);
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
void unpackBits(In from, Out into, Word set) {
    const std::size_t count = into.size() / sizeof(Word);
    for (std::size_t i = 0; i < count; ++i) {
        const unsigned bit = std::to_integer<unsigned>(from[i / kBits]) >> (i % kBits) & 1u;
        store<Word>(into, i, bit != 0 ? set : Word{0});
    }
}

template <class Word>
Status encodeMask(In from, Out into) {
    const std::size_t count = from.size() / sizeof(Word);
    Word value = 0, other = 0;
    for (std::size_t i = 0; i < count && value == 0; ++i) value = load<Word>(from, i);
    for (std::size_t i = 0; i < count; ++i) {
        const Word word = load<Word>(from, i);
        other |= word == 0 ? Word{0} : static_cast<Word>(word ^ value);
    }
    if (other != 0) return lossy("a mask holds more than two values");
    store<std::uint64_t>(into, 0, value);
    packBits<Word>(from, into.subspan(kValueBytes), [](Word word) { return word != 0; });
    return {};
}

template <class Word>
void decodeMask(In from, Out into) {
    unpackBits<Word>(from.subspan(kValueBytes), into,
                     static_cast<Word>(load<std::uint64_t>(from, 0)));
}

// A floating-point format, for what the codec asks of it: the bits of infinity, and those of 1.
template <class Word>
void encodeSign(In from, Out into, Word infinity) {
    constexpr Word kMagnitude = static_cast<Word>(~Word{0}) >> 1;
    packBits<Word>(from, into, [infinity](Word word) {
        const Word magnitude = word & kMagnitude;
        const bool negative = word != magnitude, notANumber = magnitude > infinity;
        return notANumber || (!negative && magnitude != 0);
    });
}

Status encodeIndices(In from, Out into) {
    const std::size_t count = from.size() / sizeof(std::uint64_t);
    std::uint64_t high = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const auto index = load<std::uint64_t>(from, i);
        high |= index >> 32;
        store<std::uint32_t>(into, i, static_cast<std::uint32_t>(index));
    }
    return high == 0 ? Status() : lossy("an index does not fit 32 bits");
}

void decodeIndices(In from, Out into) {
    const std::size_t count = into.size() / sizeof(std::uint64_t);
    for (std::size_t i = 0; i < count; ++i)
        store<std::uint64_t>(into, i, load<std::uint32_t>(from, i));
}

// No complex numbers, whose kind is that of their parts.
bool isReal(ElementType type) {
    switch (type.kind) {
        case ElementKind::Half:
        case ElementKind::BFloat16:
            return type.bytes == 2;
        case ElementKind::Float:
            return type.bytes == 4;
        case ElementKind::Double:
            return type.bytes == 8;
        case ElementKind::Other:
            break;
    }
    return false;
}

// Bytes of the encoded form. Errors: BadInput for elements that the codec does not take.
core::Result<std::size_t> encodedBytes(std::string_view codec, ElementType type,
                                       std::size_t bytes) {
    const bool power = type.bytes == 1 || type.bytes == 2 || type.bytes == 4 || type.bytes == 8;
    if (!power || bytes % type.bytes != 0) return notFor(codec);
    const std::size_t elements = bytes / type.bytes;
    if (codec == core::kMaskCodec) return kValueBytes + bitBytes(elements);
    if (codec == core::kSignCodec)
        return isReal(type) ? core::Result<std::size_t>(bitBytes(elements)) : notFor(codec);
    if (codec == core::kIndexCodec)
        return type.kind == ElementKind::Other && type.bytes == sizeof(std::uint64_t)
                   ? core::Result<std::size_t>(elements * sizeof(std::uint32_t))
                   : notFor(codec);
    return core::badInput("this executor knows no codec '" + std::string(codec) + "'",
                          "run the plan with the executor of the version that made it");
}

Status requireRoom(std::string_view codec, ElementType type, std::size_t plain,
                   std::size_t encoded) {
    const auto needed = encodedBytes(codec, type, plain);
    if (!needed) return needed.error();
    if (*needed <= encoded) return {};
    return core::badInput("the codec '" + std::string(codec) + "' needs " +
                              std::to_string(*needed) + " bytes where the plan has " +
                              std::to_string(encoded),
                          "make the plan again");
}

}  // namespace

bool isCodec(std::string_view name) {
    return name == core::kMaskCodec || name == core::kSignCodec || name == core::kIndexCodec;
}

Status encode(std::string_view codec, ElementType elements, In from, Out into) {
    if (Status ok = requireRoom(codec, elements, from.size(), into.size()); !ok) return ok;
    std::fill(into.begin(), into.end(), std::byte{0});
    if (codec == core::kIndexCodec) return encodeIndices(from, into);
    if (codec == core::kMaskCodec) {
        if (elements.bytes == 1) return encodeMask<std::uint8_t>(from, into);
        if (elements.bytes == 2) return encodeMask<std::uint16_t>(from, into);
        if (elements.bytes == 4) return encodeMask<std::uint32_t>(from, into);
        return encodeMask<std::uint64_t>(from, into);
    }
    if (elements.kind == ElementKind::Half) encodeSign<std::uint16_t>(from, into, 0x7c00);
    if (elements.kind == ElementKind::BFloat16) encodeSign<std::uint16_t>(from, into, 0x7f80);
    if (elements.kind == ElementKind::Float) encodeSign<std::uint32_t>(from, into, 0x7f800000);
    if (elements.kind == ElementKind::Double)
        encodeSign<std::uint64_t>(from, into, 0x7ff0000000000000);
    return {};
}

Status decode(std::string_view codec, ElementType elements, In from, Out into) {
    if (Status ok = requireRoom(codec, elements, into.size(), from.size()); !ok) return ok;
    if (codec == core::kIndexCodec) {
        decodeIndices(from, into);
    } else if (codec == core::kMaskCodec) {
        if (elements.bytes == 1) decodeMask<std::uint8_t>(from, into);
        if (elements.bytes == 2) decodeMask<std::uint16_t>(from, into);
        if (elements.bytes == 4) decodeMask<std::uint32_t>(from, into);
        if (elements.bytes == 8) decodeMask<std::uint64_t>(from, into);
    } else {  // signs: 1 where the bit is set
        if (elements.kind == ElementKind::Half) unpackBits<std::uint16_t>(from, into, 0x3c00);
        if (elements.kind == ElementKind::BFloat16) unpackBits<std::uint16_t>(from, into, 0x3f80);
        if (elements.kind == ElementKind::Float) unpackBits<std::uint32_t>(from, into, 0x3f800000);
        if (elements.kind == ElementKind::Double)
            unpackBits<std::uint64_t>(from, into, 0x3ff0000000000000);
    }
    return {};
}

}  // namespace hw::executor

// SPDX-License-Identifier: MIT
#include "encoding.h"

#include <limits>

#include "codec_kernels.h"

namespace hw::live::runtime {

namespace codecs = executor::codecs;
namespace {

using wire::LiveCodec;

/// A floating-point type by the bits of 1 and of infinity; none: it is none of them.
struct Format {
    std::uint64_t one = 0, infinity = 0;
};
Format formatOf(c10::ScalarType type) {
    switch (type) {
        case c10::ScalarType::Half:
            return {0x3c00, 0x7c00};
        case c10::ScalarType::BFloat16:
            return {0x3f80, 0x7f80};
        case c10::ScalarType::Float:
            return {0x3f800000, 0x7f800000};
        case c10::ScalarType::Double:
            return {0x3ff0000000000000, 0x7ff0000000000000};
        default:
            return {};
    }
}

std::size_t widthOf(c10::ScalarType type) {
    switch (type) {
        case c10::ScalarType::Bool:
        case c10::ScalarType::Byte:
        case c10::ScalarType::Char:
            return 1;
        case c10::ScalarType::Half:
        case c10::ScalarType::BFloat16:
        case c10::ScalarType::Short:
            return 2;
        case c10::ScalarType::Float:
        case c10::ScalarType::Int:
            return 4;
        case c10::ScalarType::Double:
        case c10::ScalarType::Long:
            return 8;
        default:
            return 0;
    }
}

/// Calls `body` with a number as wide as the elements.
template <class Body>
auto withWord(c10::ScalarType type, const Body& body) {
    switch (widthOf(type)) {
        case 1:
            return body(std::uint8_t());
        case 2:
            return body(std::uint16_t());
        case 4:
            return body(std::uint32_t());
        default:
            return body(std::uint64_t());
    }
}

}  // namespace

std::int64_t encodedBytes(const Encoding& how, std::size_t plain) {
    constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
    const std::size_t width = widthOf(how.type);
    if (width == 0 || plain % width != 0) return kNone;
    const std::size_t elements = plain / width;
    switch (how.codec) {
        case LiveCodec::Mask:
            return static_cast<std::int64_t>(codecs::kValueBytes + codecs::bitBytes(elements));
        case LiveCodec::Sign:
            return formatOf(how.type).one == 0
                       ? kNone
                       : static_cast<std::int64_t>(codecs::bitBytes(elements));
        case LiveCodec::Index:
            return how.type != c10::ScalarType::Long
                       ? kNone
                       : static_cast<std::int64_t>(elements * sizeof(std::uint32_t));
    }
    return kNone;
}

bool encodeBytes(const Encoding& how, const void* plain, std::size_t bytes, void* form) {
    const auto* const from = static_cast<const std::byte*>(plain);
    auto* const into = static_cast<std::byte*>(form);
    return withWord(how.type, [&](auto word) {
        using Word = decltype(word);
        const std::size_t elements = bytes / sizeof(Word);
        if (how.codec == LiveCodec::Mask) return codecs::encodeMask<Word>(from, elements, into);
        if (how.codec == LiveCodec::Index) return codecs::encodeIndices(from, elements, into);
        codecs::encodeSign<Word>(from, elements, into,
                                 static_cast<Word>(formatOf(how.type).infinity));
        return true;
    });
}

void decodeBytes(const Encoding& how, const void* form, std::size_t bytes, void* plain) {
    const auto* const from = static_cast<const std::byte*>(form);
    auto* const into = static_cast<std::byte*>(plain);
    withWord(how.type, [&](auto word) {
        using Word = decltype(word);
        const std::size_t elements = bytes / sizeof(Word);
        if (how.codec == LiveCodec::Mask)
            codecs::decodeMask<Word>(from, elements, into);
        else if (how.codec == LiveCodec::Index)
            codecs::decodeIndices(from, elements, into);
        else
            codecs::unpackBits<Word>(from, elements, into,
                                     static_cast<Word>(formatOf(how.type).one));
    });
}

}  // namespace hw::live::runtime

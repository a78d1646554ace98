// SPDX-License-Identifier: MIT
#include "executor/replay/codec.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "core/plan/codec.h"
#include "executor/codec/codec_kernels.h"

namespace hw::executor {
namespace {

using core::Error;
using core::ErrorCode;
using core::Status;
using In = Span<const std::byte>;
using Out = Span<std::byte>;

Error notFor(std::string_view codec) {
    return core::badInput("the codec '" + std::string(codec) + "' does not take such elements",
                          "make the plan again");
}

Error lossy(const std::string& what) {
    return {ErrorCode::Verification, what, "make the plan again, with the option encodings=off"};
}

Status encodeIndices(In from, Out into) {
    const bool fits =
        codecs::encodeIndices(from.data(), from.size() / sizeof(std::uint64_t), into.data());
    return fits ? Status() : lossy("an index does not fit 32 bits");
}

template <class Word>
Status encodeMask(In from, Out into) {
    const bool two = codecs::encodeMask<Word>(from.data(), from.size() / sizeof(Word), into.data());
    return two ? Status() : lossy("a mask holds more than two values");
}
template <class Word>
void decodeMask(In from, Out into) {
    codecs::decodeMask<Word>(from.data(), into.size() / sizeof(Word), into.data());
}

template <class Word>
void encodeSign(In from, Out into, Word infinity) {
    codecs::encodeSign<Word>(from.data(), from.size() / sizeof(Word), into.data(), infinity);
}
template <class Word>
void decodeSign(In from, Out into, Word one) {
    codecs::unpackBits<Word>(from.data(), into.size() / sizeof(Word), into.data(), one);
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
    if (codec == core::kMaskCodec) return codecs::kValueBytes + codecs::bitBytes(elements);
    if (codec == core::kSignCodec)
        return isReal(type) ? core::Result<std::size_t>(codecs::bitBytes(elements)) : notFor(codec);
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
        codecs::decodeIndices(from.data(), into.size() / sizeof(std::uint64_t), into.data());
    } else if (codec == core::kMaskCodec) {
        if (elements.bytes == 1) decodeMask<std::uint8_t>(from, into);
        if (elements.bytes == 2) decodeMask<std::uint16_t>(from, into);
        if (elements.bytes == 4) decodeMask<std::uint32_t>(from, into);
        if (elements.bytes == 8) decodeMask<std::uint64_t>(from, into);
    } else {  // signs: 1 where the bit is set
        if (elements.kind == ElementKind::Half) decodeSign<std::uint16_t>(from, into, 0x3c00);
        if (elements.kind == ElementKind::BFloat16) decodeSign<std::uint16_t>(from, into, 0x3f80);
        if (elements.kind == ElementKind::Float) decodeSign<std::uint32_t>(from, into, 0x3f800000);
        if (elements.kind == ElementKind::Double)
            decodeSign<std::uint64_t>(from, into, 0x3ff0000000000000);
    }
    return {};
}

}  // namespace hw::executor

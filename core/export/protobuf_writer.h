// SPDX-License-Identifier: MIT
// The few pieces of protobuf's wire format that an encoder needs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hw::core {

class ProtobufWriter {
public:
    /// An int64, uint64, bool or enum field.
    void number(std::uint32_t field, std::int64_t value) {
        varint(std::uint64_t{field} << 3);
        varint(static_cast<std::uint64_t>(value));
    }
    /// A string, bytes or message field.
    void bytes(std::uint32_t field, std::string_view value) {
        varint(std::uint64_t{field} << 3 | 2);
        varint(value.size());
        text_.append(value);
    }
    void message(std::uint32_t field, const ProtobufWriter& value) { bytes(field, value.text_); }

    const std::string& text() const { return text_; }

private:
    void varint(std::uint64_t value) {
        for (; value >= 0x80; value >>= 7) text_ += static_cast<char>(value | 0x80);
        text_ += static_cast<char>(value);
    }
    std::string text_;
};

}  // namespace hw::core

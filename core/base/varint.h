// SPDX-License-Identifier: MIT
// Whole numbers in as few bytes as they need: seven bits a byte, the sign in the lowest bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hw::core {

/// a + b modulo 2^64.
constexpr std::int64_t wrappingSum(std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

class VarintWriter {
public:
    void unsignedNumber(std::uint64_t value) {
        if (value < 0x80) return bytes_.push_back(static_cast<std::byte>(value));
        std::byte buffer[10];
        std::size_t size = 0;
        while (value >= 0x80) {
            buffer[size++] = static_cast<std::byte>(value | 0x80);
            value >>= 7;
        }
        buffer[size++] = static_cast<std::byte>(value);
        bytes_.insert(bytes_.end(), buffer, buffer + size);
    }
    void number(std::int64_t value) {
        unsignedNumber((static_cast<std::uint64_t>(value) << 1) ^
                       static_cast<std::uint64_t>(value >> 63));
    }
    /// value - base, modulo 2^64: any two values have a difference.
    void difference(std::int64_t value, std::int64_t base) {
        number(static_cast<std::int64_t>(static_cast<std::uint64_t>(value) -
                                         static_cast<std::uint64_t>(base)));
    }
    void part(std::span<const std::byte> value) {
        unsignedNumber(value.size());
        raw(value);
    }
    void text(std::string_view value) {
        part(std::as_bytes(std::span(value.data(), value.size())));
    }
    void raw(std::span<const std::byte> value) {
        bytes_.insert(bytes_.end(), value.begin(), value.end());
    }

    const std::vector<std::byte>& bytes() const { return bytes_; }
    void clear() { bytes_.clear(); }

private:
    std::vector<std::byte> bytes_;
};

/// Reads what a VarintWriter wrote. Past the end or on malformed bytes every read gives 0 and
/// good() turns false for ever.
class VarintReader {
public:
    explicit VarintReader(std::span<const std::byte> bytes) : rest_(bytes) {}

    std::uint64_t unsignedNumber() {
        std::uint64_t value = 0;
        for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
            const auto byte = static_cast<std::uint64_t>(rest_.front());
            rest_ = rest_.subspan(1);
            value |= (byte & 0x7f) << shift;
            if (byte < 0x80) return value;
        }
        return fail();
    }
    std::int64_t number() {
        const std::uint64_t value = unsignedNumber();
        return static_cast<std::int64_t>((value >> 1) ^ (~(value & 1) + 1));
    }
    std::int64_t difference(std::int64_t base) { return wrappingSum(number(), base); }
    /// What VarintWriter::part wrote; it points into the bytes that are read.
    std::span<const std::byte> part() {
        const std::uint64_t size = unsignedNumber();
        if (size > rest_.size()) return fail(), rest_;
        const auto value = rest_.first(size);
        rest_ = rest_.subspan(size);
        return value;
    }
    std::string text() {
        const auto value = part();
        return {reinterpret_cast<const char*>(value.data()), value.size()};
    }

    bool good() const { return good_; }
    bool atEnd() const { return rest_.empty(); }
    std::span<const std::byte> rest() const { return rest_; }

private:
    std::uint64_t fail() {
        good_ = false;
        rest_ = {};
        return 0;
    }
    std::span<const std::byte> rest_;
    bool good_ = true;
};

}  // namespace hw::core

// SPDX-License-Identifier: MIT
#include "core/import/tar_member.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <vector>

namespace hw::core {
namespace {

constexpr std::size_t kTarBlock = 512;
using TarBlock = std::array<char, kTarBlock>;

// A number in octal, or, where its first bit is set, in binary; nothing where it is neither.
std::optional<std::int64_t> numberAt(const char* field, std::size_t length) {
    std::int64_t value = 0;
    if ((static_cast<unsigned char>(field[0]) & 0x80) != 0) {
        for (std::size_t i = 1; i < length; ++i) {
            if (value > INT64_MAX / 256) return std::nullopt;
            value = value * 256 + static_cast<unsigned char>(field[i]);
        }
        return value;
    }
    bool any = false;
    for (std::size_t i = 0; i < length; ++i) {
        const char c = field[i];
        if (c == '\0' || c == ' ') {
            if (any) break;
            continue;
        }
        if (c < '0' || c > '7' || value > INT64_MAX / 8) return std::nullopt;
        value = value * 8 + (c - '0');
        any = true;
    }
    return any ? std::optional(value) : std::nullopt;
}

// The sum of a header's bytes, its own field taken as blanks.
bool sumFits(const char* head) {
    const auto claimed = numberAt(head + 148, 8);
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < kTarBlock; ++i)
        sum += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(head[i]);
    return claimed && *claimed == sum;
}

std::string nameIn(const TarBlock& head) {
    return {head.data(), strnlen(head.data(), 100)};
}

// Resource forks that macOS adds beside each file are no file of the user.
bool isSideFile(const std::string& name) {
    return std::string_view(name).substr(name.rfind('/') + 1).starts_with("._");
}

}  // namespace

bool looksLikeTar(const char* head, std::size_t size) {
    return size >= kTarBlock && head[0] != '\0' && sumFits(head);
}

Result<TarMember> onlyTarMember(const TarReader& read) {
    std::vector<TarMember> members;
    std::int64_t at = 0;
    TarBlock block{};
    std::vector<char> skipped(1 << 16);
    while (read(block.data(), kTarBlock) == kTarBlock && block[0] != '\0') {
        const auto size = numberAt(block.data() + 124, 12);
        if (!sumFits(block.data()) || !size || *size > INT64_MAX / 2)
            return badInput("the tar archive is damaged", "pack it again");
        at += static_cast<std::int64_t>(kTarBlock);
        const char kind = block[156];
        const bool file = kind == '0' || kind == '\0' || kind == '7';
        if (file && !isSideFile(nameIn(block))) members.push_back({nameIn(block), at, *size});
        constexpr auto kUnit = static_cast<std::int64_t>(kTarBlock);
        std::int64_t left = (*size + kUnit - 1) / kUnit * kUnit;
        at += left;
        while (left > 0) {
            const std::size_t got =
                read(skipped.data(), static_cast<std::size_t>(std::min<std::int64_t>(
                                         left, static_cast<std::int64_t>(skipped.size()))));
            if (got == 0) return badInput("the tar archive was cut short", "copy it again");
            left -= static_cast<std::int64_t>(got);
        }
        if (members.size() > 1)
            return badInput("the tar archive holds several files ('" + members[0].name + "', '" +
                                members[1].name + "', …)",
                            "unpack it and name the one to read");
    }
    if (members.empty()) return badInput("the tar archive holds no file", "pack the trace again");
    return members.front();
}

}  // namespace hw::core

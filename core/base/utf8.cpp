// SPDX-License-Identifier: MIT
#include "core/base/utf8.h"

#include <algorithm>

namespace hw::core {

std::optional<char32_t> utf8Character(std::string_view sequence) {
    if (sequence.empty()) return std::nullopt;
    const auto lead = static_cast<unsigned char>(sequence.front());
    const std::size_t length = utf8Length(lead);
    if (length != sequence.size()) return std::nullopt;
    if (length == 1) return lead;
    char32_t character = lead & (0x7fU >> length);
    for (const char next : sequence.substr(1)) {
        const auto byte = static_cast<unsigned char>(next);
        if ((byte & 0xc0U) != 0x80) return std::nullopt;
        character = character << 6U | (byte & 0x3fU);
    }
    const bool surrogate = character >= 0xd800 && character < 0xe000;
    const bool tooLong = (length == 3 && character < 0x800) || (length == 4 && character < 0x10000);
    if (surrogate || tooLong || character > 0x10ffff) return std::nullopt;
    return character;
}

std::string shownName(std::string_view name) {
    const auto plain = [](char c) { return c >= 0x20 && c < 0x7f; };
    if (name.size() <= kLongestName && std::ranges::all_of(name, plain)) return std::string(name);
    std::string shown;
    forEachCharacter(name.substr(0, kLongestName),
                     [&](std::string_view sequence, std::optional<char32_t> character) {
                         if (!character || isHarmful(*character))
                             shown += '?';
                         else
                             shown += sequence;
                     });
    if (name.size() > kLongestName) shown += "…";
    return shown;
}

}  // namespace hw::core

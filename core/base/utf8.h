// SPDX-License-Identifier: MIT
// Text out of files that may come from anybody: what of it may be shown.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace hw::core {

/// Bytes of the UTF-8 sequence that begins with this one; 0 where none does.
constexpr std::size_t utf8Length(unsigned char lead) {
    if (lead < 0x80) return 1;
    if (lead < 0xc2 || lead > 0xf4) return 0;
    return lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

/// The character of one whole sequence; nothing where it is no UTF-8 (RFC 3629).
std::optional<char32_t> utf8Character(std::string_view sequence);

/// Control characters, line separators and marks that change the direction of text. A terminal
/// obeys them, and one line can be made to look like another.
constexpr bool isHarmful(char32_t character) {
    return character < 0x20 || (character >= 0x7f && character < 0xa0) || character == 0x2028 ||
           character == 0x2029 || (character >= 0x202a && character <= 0x202e) ||
           (character >= 0x2066 && character <= 0x2069);
}

/// Calls `visit` with each sequence of `text` and its character. A byte that belongs to no valid
/// sequence is visited by itself, without a character.
template <typename Visit>
void forEachCharacter(std::string_view text, Visit visit) {
    while (!text.empty()) {
        std::size_t length = utf8Length(static_cast<unsigned char>(text.front()));
        std::optional<char32_t> character;
        if (length != 0 && length <= text.size()) character = utf8Character(text.substr(0, length));
        if (!character) length = 1;
        visit(text.substr(0, length), character);
        text.remove_prefix(length);
    }
}

/// A name as it is shown: one line of at most `kLongestName` bytes, with "?" for what is harmful or
/// no UTF-8.
constexpr std::size_t kLongestName = 2000;
std::string shownName(std::string_view name);

}  // namespace hw::core

// SPDX-License-Identifier: MIT
// Integers of JSON files from outside. nlohmann's get<int>() converts whatever number it finds: it
// wraps one that is too large and, for a float, is undefined.
#pragma once

#include <charconv>
#include <cmath>
#include <concepts>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>

namespace hw::core {

/// The integer that `value` holds; a float counts where it is whole and below 2^53, as some writers
/// make no difference. Throws std::invalid_argument where it is none or does not fit into Integer.
template <std::integral Integer>
Integer integerOf(const nlohmann::json& value) {
    constexpr double kExact = 9007199254740992.0;
    if (value.is_number_unsigned()) {
        if (const auto number = value.get<std::uint64_t>(); std::in_range<Integer>(number))
            return static_cast<Integer>(number);
    } else if (value.is_number_integer()) {
        if (const auto number = value.get<std::int64_t>(); std::in_range<Integer>(number))
            return static_cast<Integer>(number);
    } else if (value.is_number_float()) {
        const auto number = value.get<double>();
        if (std::abs(number) < kExact && number == std::trunc(number) &&
            std::in_range<Integer>(static_cast<std::int64_t>(number)))
            return static_cast<Integer>(number);
    }
    throw std::invalid_argument(
        value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).substr(0, 60) +
        " is no whole number, or out of range");
}

/// The integer that the whole of `text` writes in decimal. Throws as above.
template <std::integral Integer>
Integer integerOf(const std::string& text) {
    Integer number{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size() || text.empty())
        throw std::invalid_argument("'" + text.substr(0, 60) +
                                    "' is no whole number, or out of range");
    return number;
}

/// The integer that `object` has at `key`, `absent` where it has none. Throws as above.
template <std::integral Integer>
Integer integerAt(const nlohmann::json& object, const char* key, Integer absent) {
    const auto at = object.find(key);
    return at == object.end() ? absent : integerOf<Integer>(*at);
}

}  // namespace hw::core

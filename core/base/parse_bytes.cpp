// SPDX-License-Identifier: MIT
#include "core/base/parse_bytes.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <string_view>

namespace hw::core {

Result<Bytes> parseBytes(const std::string& text) {
    static const std::map<std::string_view, double> kUnits{
        {"", 1},         {"B", 1},        {"kB", 1e3},    {"KB", 1e3},
        {"MB", 1e6},     {"GB", 1e9},     {"TB", 1e12},   {"KiB", 0x1p10},
        {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}};
    const Error error{ErrorCode::Usage, "'" + text + "' is no size",
                      "write 4GiB, 500MB or a number of bytes"};
    std::string_view rest = text;
    const auto skipSpaces = [&] {
        rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    };
    skipSpaces();
    // Not strtod: in the window it would ask the locale what a decimal point is.
    double value = 0;
    const auto [end, failed] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    if (failed != std::errc() || !(value > 0) || !std::isfinite(value)) return error;
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    skipSpaces();
    const auto unit = kUnits.find(rest);
    if (unit == kUnits.end() || value * unit->second > 9e18) return error;
    if (value * unit->second < 1)
        return Error{
            ErrorCode::Usage, "'" + text + "' is less than a byte",
            "write 4GiB, 500MB or a number of bytes; shares are for --ratio, where there is one"};
    return Bytes(static_cast<std::int64_t>(value * unit->second));
}

}  // namespace hw::core

// SPDX-License-Identifier: MIT
#include "core/base/parse_bytes.h"

#include <locale>
#include <map>
#include <sstream>

namespace hw::core {

Result<Bytes> parseBytes(const std::string& text) {
    static const std::map<std::string, double> kUnits{
        {"", 1},         {"B", 1},        {"kB", 1e3},    {"KB", 1e3},
        {"MB", 1e6},     {"GB", 1e9},     {"TB", 1e12},   {"KiB", 0x1p10},
        {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}};
    const Error error{ErrorCode::Usage, "'" + text + "' is no size",
                      "write 4GiB, 500MB or a number of bytes"};
    // Not strtod: in the window it would ask the locale what a decimal point is.
    std::istringstream in(text);
    in.imbue(std::locale::classic());
    double value = 0;
    if (!(in >> value) || !(value > 0)) return error;
    std::string rest;
    std::getline(in, rest);
    rest.erase(0, rest.find_first_not_of(' '));
    const auto unit = kUnits.find(rest);
    if (unit == kUnits.end() || value * unit->second > 9e18) return error;
    if (value * unit->second < 1)
        return Error{
            ErrorCode::Usage, "'" + text + "' is less than a byte",
            "write 4GiB, 500MB or a number of bytes; shares are for --ratio, where there is one"};
    return Bytes(static_cast<std::int64_t>(value * unit->second));
}

}  // namespace hw::core

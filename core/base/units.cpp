// SPDX-License-Identifier: MIT
#include "core/base/units.h"

#include <array>
#include <cmath>
#include <cstdio>

namespace hw::core {
namespace {

std::string withUnit(double value, const char* unit) {
    const double magnitude = std::fabs(value);
    const int digits = magnitude >= 100 ? 1 : 2;
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), "%.*f %s", digits, value, unit);
    return text.data();
}

}  // namespace

std::string humanBytes(Bytes size) {
    const double bytes = static_cast<double>(size.count());
    const double magnitude = std::fabs(bytes);
    if (magnitude >= 1e9) return withUnit(bytes / 1e9, "GB");
    if (magnitude >= 1e6) return withUnit(bytes / 1e6, "MB");
    if (magnitude >= 1e3) return withUnit(bytes / 1e3, "kB");
    return std::to_string(size.count()) + " B";
}

std::string humanTime(Nanoseconds time) {
    const double ns = static_cast<double>(time.count());
    const double magnitude = std::fabs(ns);
    if (magnitude >= 1e10) return withUnit(ns / 1e9, "s");
    if (magnitude >= 1e5) return withUnit(ns / 1e6, "ms");
    return withUnit(ns / 1e3, "µs");
}

std::string humanSeconds(std::int64_t seconds) {
    if (seconds < 60) return std::to_string(seconds) + " s";
    if (seconds < 3600) return std::to_string(seconds / 60) + " min";
    if (seconds < 86400) return std::to_string(seconds / 3600) + " h";
    return std::to_string(seconds / 86400) + " d";
}

}  // namespace hw::core

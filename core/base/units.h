// SPDX-License-Identifier: MIT
// Strong types for sizes and times. Figures never travel as bare numbers across borders.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace hw::core {

/// A whole-number quantity with a unit. `Unit` only tells quantities apart.
template <class Unit>
class Quantity {
public:
    constexpr Quantity() = default;
    constexpr explicit Quantity(std::int64_t count) : count_(count) {}

    constexpr std::int64_t count() const { return count_; }

    constexpr auto operator<=>(const Quantity&) const = default;
    constexpr Quantity& operator+=(Quantity other) {
        count_ += other.count_;
        return *this;
    }
    constexpr Quantity& operator-=(Quantity other) {
        count_ -= other.count_;
        return *this;
    }
    friend constexpr Quantity operator+(Quantity a, Quantity b) {
        return Quantity(a.count_ + b.count_);
    }
    friend constexpr Quantity operator-(Quantity a, Quantity b) {
        return Quantity(a.count_ - b.count_);
    }
    friend constexpr Quantity operator*(Quantity a, std::int64_t n) {
        return Quantity(a.count_ * n);
    }

    /// a / b as a ratio without unit; 0 when b is 0.
    friend constexpr double ratio(Quantity a, Quantity b) {
        return b.count_ == 0 ? 0.0 : static_cast<double>(a.count_) / static_cast<double>(b.count_);
    }

private:
    std::int64_t count_ = 0;
};

using Bytes = Quantity<struct BytesUnit>;              // bytes
using Nanoseconds = Quantity<struct NanosecondsUnit>;  // nanoseconds

/// "10.06 GB": decimal units, three significant digits at least.
std::string humanBytes(Bytes size);
/// "291.9 ms".
std::string humanTime(Nanoseconds time);
/// In whole seconds, minutes, hours or days: how long a process has run.
std::string humanSeconds(std::int64_t seconds);

}  // namespace hw::core

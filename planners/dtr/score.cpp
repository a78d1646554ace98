// SPDX-License-Identifier: MIT
#include "planners/dtr/score.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "planners/dtr/storage_set.h"

namespace hw::planners {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

__extension__ using Wide = unsigned __int128;

/// Of a value that is not 0.
int bitLength(Wide value) {
    const auto high = static_cast<std::uint64_t>(value >> 64);
    return high != 0 ? 65 + highestBit(high) : 1 + highestBit(static_cast<std::uint64_t>(value));
}

// numerator / denominator rounded once to the nearest double, ties to even, for any magnitude below
// 2^100: 118 quotient bits by two long divisions, the rest as a sticky bit.
double divideExactly(std::uint64_t numerator, Wide denominator) {
    if (numerator == 0) return 0.0;
    const int shift = 127 - bitLength(numerator);
    const Wide scaled = static_cast<Wide>(numerator) << shift;
    Wide quotient = scaled / denominator;
    Wide rest = scaled % denominator;
    int exponent = -shift;
    while (bitLength(quotient) < 64 && rest != 0) {
        const int step = std::min(128 - bitLength(denominator), 64 - bitLength(quotient));
        rest <<= step;
        quotient = (quotient << step) | (rest / denominator);
        rest %= denominator;
        exponent -= step;
    }
    const int surplus = bitLength(quotient) - 64;
    if (surplus > 0) {
        rest |= quotient & ((static_cast<Wide>(1) << surplus) - 1);
        quotient >>= surplus;
        exponent += surplus;
    }
    auto bits = static_cast<std::uint64_t>(quotient);  // 64 significant bits or fewer, then exact
    if (highestBit(bits) < 63) return std::ldexp(static_cast<double>(bits), exponent);
    const std::uint64_t low = bits & 0x7ff;
    bits >>= 11;
    if (low > 0x400 || (low == 0x400 && (rest != 0 || (bits & 1) != 0))) ++bits;
    return std::ldexp(static_cast<double>(bits), exponent + 11);
}

// The quotient in x87 extended precision settles all cases but those next to a rounding boundary.
double divide(std::uint64_t numerator, Wide denominator) {
    if constexpr (std::numeric_limits<long double>::digits == 64) {
        const auto low64 = static_cast<std::uint64_t>(denominator);  // nearly always all of it
        const long double divisor = low64 == denominator ? static_cast<long double>(low64)
                                                         : static_cast<long double>(denominator);
        const long double quotient = static_cast<long double>(numerator) / divisor;
        std::uint64_t mantissa = 0;  // 64 bits, the leading one among them
        std::memcpy(&mantissa, &quotient, sizeof mantissa);
        const auto low = static_cast<std::int64_t>(mantissa & 0x7ff);
        if (std::abs(low - 0x400) > 4) return static_cast<double>(quotient);
    }
    return divideExactly(numerator, denominator);
}

}  // namespace

double dtrScore(std::int64_t compute, std::int64_t size, std::int64_t staleness) {
    if (size <= 0 || staleness <= 0) return kInfinity;
    if (compute == 0) return 0.0;
    const Wide denominator = static_cast<Wide>(size) * static_cast<Wide>(staleness);
    const auto magnitude = static_cast<std::uint64_t>(compute < 0 ? -compute : compute);
    const double result = divide(magnitude, denominator);
    return compute < 0 ? -result : result;
}

}  // namespace hw::planners

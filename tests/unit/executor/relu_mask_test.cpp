// SPDX-License-Identifier: MIT
#include "executor/replay/relu_mask.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <limits>
#include <vector>

using namespace hw::executor;

namespace {

// Elements of every kind that a comparison with 0 tells apart, `count` of them.
std::vector<float> samples(std::size_t count) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const std::vector<float> kinds{1.5f,
                                   0.0f,
                                   -0.0f,
                                   -2.0f,
                                   std::numeric_limits<float>::infinity(),
                                   -std::numeric_limits<float>::infinity(),
                                   std::numeric_limits<float>::denorm_min(),
                                   nan,
                                   -nan,
                                   -std::numeric_limits<float>::denorm_min(),
                                   3.0f};
    std::vector<float> values;
    for (std::size_t i = 0; i < count; ++i) values.push_back(kinds[i % kinds.size()]);
    return values;
}

std::uint32_t bitsOf(float value) {
    return std::bit_cast<std::uint32_t>(value);
}

}  // namespace

TEST(ReluMask, TheGradientIsThatOfAComparisonWithZeroToTheBit) {
    for (const std::size_t count : {0u, 1u, 7u, 8u, 9u, 64u, 101u}) {
        const std::vector<float> result = samples(count);
        std::vector<float> gradient = samples(count + 3);
        gradient.erase(gradient.begin(), gradient.begin() + 3);
        std::vector<std::byte> bits((count + 7) / 8, std::byte{0xaa});
        packPositive(result, bits);
        std::vector<float> masked(count, 7.0f);
        maskGradient(bits, gradient, masked);
        for (std::size_t i = 0; i < count; ++i)
            EXPECT_EQ(bitsOf(masked[i]), bitsOf(result[i] <= 0 ? 0.0f : gradient[i])) << i;
        maskGradient(bits, gradient, gradient);  // over itself
        for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(bitsOf(masked[i]), bitsOf(gradient[i]));
    }
}

TEST(ReluMask, BitsBehindTheLastElementAreClear) {
    const std::vector<float> result(10, 1.0f);
    std::vector<std::byte> bits(2, std::byte{0xff});
    packPositive(result, bits);
    EXPECT_EQ(bits[0], std::byte{0xff});
    EXPECT_EQ(bits[1], std::byte{0x03});
}

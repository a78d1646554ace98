// SPDX-License-Identifier: MIT
#include "executor/replay/codec.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "core/plan/codec.h"

using namespace hw::core;
using namespace hw::executor;

namespace {

constexpr ElementType kFloat{4, ElementKind::Float}, kLong{8, ElementKind::Other};

template <class T>
std::span<const std::byte> bytesOf(const std::vector<T>& values) {
    return std::as_bytes(std::span(values));
}

// What comes back after encoding into `bytes` bytes; empty when the codec refuses.
template <class T>
std::vector<T> thereAndBack(std::string_view codec, ElementType type, const std::vector<T>& values,
                            std::size_t bytes) {
    std::vector<std::byte> encoded(bytes);
    if (!encode(codec, type, bytesOf(values), encoded)) return {};
    std::vector<T> back(values.size(), T(7));
    if (!decode(codec, type, encoded, std::as_writable_bytes(std::span(back)))) return {};
    return back;
}

template <class T>
std::vector<T> mask(std::size_t count, T value) {
    std::mt19937 random(static_cast<unsigned>(count));
    std::vector<T> values(count);
    for (T& each : values) each = random() % 3 == 0 ? T(0) : value;
    return values;
}

ErrorCode refusal(std::string_view codec, ElementType type, std::span<const std::byte> from,
                  std::size_t bytes) {
    std::vector<std::byte> encoded(bytes);
    const Status status = encode(codec, type, from, encoded);
    EXPECT_FALSE(status);
    return status ? ErrorCode::Internal : status.error().code;
}

}  // namespace

TEST(Codec, MasksOfAnyWidthComeBack) {
    for (const std::size_t count : {1u, 7u, 8u, 9u, 1000u}) {
        const std::size_t room = 8 + (count + 7) / 8;
        const auto floats = mask<float>(count, 1.0f / 0.9f);
        EXPECT_EQ(thereAndBack(kMaskCodec, kFloat, floats, room), floats);
        const auto doubles = mask<double>(count, 1.25);
        EXPECT_EQ(thereAndBack(kMaskCodec, {8, ElementKind::Double}, doubles, room), doubles);
        const auto halves = mask<std::uint16_t>(count, 0x3c01);
        EXPECT_EQ(thereAndBack(kMaskCodec, {2, ElementKind::Half}, halves, room), halves);
        const auto booleans = mask<std::uint8_t>(count, 1);
        EXPECT_EQ(thereAndBack(kMaskCodec, {1, ElementKind::Other}, booleans, room + 3), booleans);
    }
    EXPECT_EQ(thereAndBack(kMaskCodec, kFloat, std::vector<float>(9, 0.0f), 10),
              std::vector<float>(9, 0.0f));
}

TEST(Codec, WhatIsNoMaskIsRefused) {
    const std::vector<float> three{0.0f, 1.0f, 2.0f}, signedZero{0.0f, 1.0f, -0.0f};
    EXPECT_EQ(refusal(kMaskCodec, kFloat, bytesOf(three), 9), ErrorCode::Verification);
    EXPECT_EQ(refusal(kMaskCodec, kFloat, bytesOf(signedZero), 9), ErrorCode::Verification);
}

TEST(Codec, SignsAnswerEveryComparisonWithZero) {
    constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    const std::vector<float> values{0.0f,       -0.0f, 1e-45f, -1e-45f, 3.0f,
                                    -kInfinity, kNan,  -kNan,  1e30f,   kInfinity};
    const auto back = thereAndBack(kSignCodec, kFloat, values, 2);
    ASSERT_EQ(back.size(), values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
        EXPECT_EQ(back[i] <= 0, values[i] <= 0) << i;
        EXPECT_TRUE(back[i] == 0 || back[i] == 1) << i;
    }
}

TEST(Codec, SignsOfNarrowFormats) {
    // 0, -0, the least positive, a negative one, infinity, -infinity, two that are no number
    const std::vector<std::uint16_t> half{0, 0x8000, 1, 0xbc00, 0x7c00, 0xfc00, 0x7c01, 0xfe00};
    const std::vector<std::uint16_t> set{0, 0, 0x3c00, 0, 0x3c00, 0, 0x3c00, 0x3c00};
    EXPECT_EQ(thereAndBack(kSignCodec, {2, ElementKind::Half}, half, 1), set);
    const std::vector<std::uint16_t> brain{0, 0x8000, 1, 0xbf80, 0x7f80, 0xff80, 0x7f81, 0xffc0};
    const std::vector<std::uint16_t> one{0, 0, 0x3f80, 0, 0x3f80, 0, 0x3f80, 0x3f80};
    EXPECT_EQ(thereAndBack(kSignCodec, {2, ElementKind::BFloat16}, brain, 1), one);
    const std::vector<double> wide{-1.0, 0.0, 1e-320};
    EXPECT_EQ(thereAndBack(kSignCodec, {8, ElementKind::Double}, wide, 1),
              (std::vector<double>{0.0, 0.0, 1.0}));
}

TEST(Codec, IndicesComeBackOrAreRefused) {
    const std::vector<std::int64_t> indices{0, 1, 65536, 0xffffffff};
    EXPECT_EQ(thereAndBack(kIndexCodec, kLong, indices, 16), indices);
    const std::vector<std::int64_t> large{1, std::int64_t{1} << 32}, negative{-1};
    EXPECT_EQ(refusal(kIndexCodec, kLong, bytesOf(large), 8), ErrorCode::Verification);
    EXPECT_EQ(refusal(kIndexCodec, kLong, bytesOf(negative), 8), ErrorCode::Verification);
}

TEST(Codec, WhatDoesNotFitIsRefused) {
    const std::vector<float> values(16, 1.0f);
    EXPECT_EQ(refusal(kMaskCodec, kFloat, bytesOf(values), 9), ErrorCode::BadInput);
    EXPECT_EQ(refusal(kSignCodec, kFloat, bytesOf(values), 1), ErrorCode::BadInput);
    EXPECT_EQ(refusal(kSignCodec, kLong, bytesOf(values), 64), ErrorCode::BadInput);
    EXPECT_EQ(refusal(kIndexCodec, kFloat, bytesOf(values), 64), ErrorCode::BadInput);
    EXPECT_EQ(refusal("zip", kFloat, bytesOf(values), 64), ErrorCode::BadInput);
    EXPECT_FALSE(isCodec("zip"));
    EXPECT_TRUE(isCodec(kIndexCodec));
}

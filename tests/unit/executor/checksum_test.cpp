// SPDX-License-Identifier: MIT
#include "executor/replay/checksum.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <span>

using namespace hw::executor;

namespace {

TensorBytes floats(const std::vector<float>& data, std::vector<std::int64_t> sizes,
                   std::vector<std::int64_t> strides, std::size_t offset = 0) {
    return {reinterpret_cast<const std::byte*>(data.data() + offset), 4, ElementKind::Float,
            std::move(sizes), std::move(strides)};
}

}  // namespace

TEST(Checksum, EveryBitOfEveryLengthMatters) {
    for (std::size_t length = 1; length <= 100; ++length) {
        std::vector<std::byte> bytes(length, std::byte{0x5a});
        std::set<std::uint64_t> seen{checksum(bytes)};
        for (std::size_t i = 0; i < length; ++i) {
            bytes[i] ^= std::byte{1};
            EXPECT_TRUE(seen.insert(checksum(bytes)).second);
            bytes[i] ^= std::byte{1};
        }
    }
}

TEST(Checksum, OrderMatters) {
    const std::vector<float> forward{1, 2, 3, 4}, swapped{2, 1, 3, 4};
    EXPECT_NE(checksum(floats(forward, {4}, {1})), checksum(floats(swapped, {4}, {1})));
    EXPECT_NE(checksum(floats(forward, {4}, {1})), checksum(floats(forward, {2, 2}, {2, 1})));
}

TEST(Checksum, AStridedTensorIsItsElementsOnly) {
    std::vector<float> data(24);
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i);
    const auto column = [&] { return checksum(floats(data, {4}, {6}, 2)); };
    const std::uint64_t before = column();
    data[3] = 99;
    EXPECT_EQ(column(), before) << "not an element of it";
    data[8] = 99;
    EXPECT_NE(column(), before) << "its second element";
}

TEST(ElementsOf, LeavesOutWhatNoElementCovers) {
    const std::vector<float> data{0, 1, 2, 3, 4, 5};
    const std::vector<std::byte> column = elementsOf(floats(data, {2}, {3}, 1));
    ASSERT_EQ(column.size(), 2 * sizeof(float));
    float values[2];
    std::memcpy(values, column.data(), sizeof values);
    EXPECT_EQ(values[0], 1);
    EXPECT_EQ(values[1], 4);
    EXPECT_TRUE(elementsOf(floats(data, {0, 3}, {3, 1})).empty());
}

TEST(Checksum, BroadcastAndEmptyTensors) {
    const std::vector<float> data{5};
    EXPECT_NE(checksum(floats(data, {3}, {0})), checksum(floats(data, {1}, {1})));
    EXPECT_EQ(checksum(floats({}, {0, 4}, {4, 1})), checksum(floats({}, {0, 4}, {4, 1})));
}

TEST(Checksum, FindsWhatIsNotFinite) {
    std::vector<float> data{1, std::numeric_limits<float>::max(), -3, 0};
    EXPECT_FALSE(hasNonfinite(floats(data, {4}, {1})));
    data[2] = -std::numeric_limits<float>::infinity();
    EXPECT_TRUE(hasNonfinite(floats(data, {4}, {1})));
    EXPECT_FALSE(hasNonfinite(floats(data, {2}, {1}))) << "the first two elements only";
    data[2] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_TRUE(hasNonfinite(floats(data, {2}, {2}))) << "elements 0 and 2";
    const std::vector<std::uint16_t> half{0x3c00, 0x7c00};
    TensorBytes narrow{
        reinterpret_cast<const std::byte*>(half.data()), 2, ElementKind::Half, {2}, {1}};
    EXPECT_TRUE(hasNonfinite(narrow));
    narrow.kind = ElementKind::BFloat16;
    EXPECT_FALSE(hasNonfinite(narrow));
    narrow.kind = ElementKind::Other;
    EXPECT_FALSE(hasNonfinite(narrow));
}

TEST(NumberOf, ReadsEveryFloatingType) {
    const auto read = [](auto word, ElementKind kind) {
        return numberOf(std::as_bytes(std::span(&word, 1)), kind);
    };
    EXPECT_EQ(read(2.5, ElementKind::Double), 2.5);
    EXPECT_EQ(read(-0.375f, ElementKind::Float), -0.375);
    EXPECT_EQ(read(std::uint16_t{0xc010}, ElementKind::BFloat16), -2.25);
    EXPECT_EQ(read(std::uint16_t{0x3c00}, ElementKind::Half), 1.0);
    EXPECT_EQ(read(std::uint16_t{0xc500}, ElementKind::Half), -5.0);
    EXPECT_EQ(read(std::uint16_t{0x0001}, ElementKind::Half), 0x1p-24);
    EXPECT_EQ(read(std::uint16_t{0x7bff}, ElementKind::Half), 65504.0);
    EXPECT_TRUE(std::isinf(*read(std::uint16_t{0x7c00}, ElementKind::Half)));
    EXPECT_TRUE(std::isnan(*read(std::uint16_t{0x7e00}, ElementKind::Half)));
    EXPECT_FALSE(read(std::int64_t{1}, ElementKind::Other));
    EXPECT_FALSE(read(2.5, ElementKind::Float)) << "a complex number";
}

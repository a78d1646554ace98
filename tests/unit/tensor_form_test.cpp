// SPDX-License-Identifier: MIT
#include "core/family/tensor_form.h"

#include <gtest/gtest.h>

namespace hw::core {
namespace {

using Numbers = std::vector<std::int64_t>;

TEST(TensorForm, OfADenseTensorIsDense) {
    // Attention scores of 2 heads over a sequence: strides are the length squared.
    const auto scores = [](std::int64_t length) {
        return SizedForm{
            length, {{3, 2, length, length}, {2 * length * length, length * length, length, 1}, 0}};
    };
    const TensorForm made = formAt({scores(4), scores(8)}, 100);
    EXPECT_EQ(made.sizes, (Numbers{3, 2, 100, 100}));
    EXPECT_EQ(made.strides, (Numbers{20000, 10000, 100, 1}));
}

TEST(TensorForm, KeepsTheOrderOfTransposedDimensions) {
    const auto transposed = [](std::int64_t batch) {
        return SizedForm{batch, {{7, batch}, {1, 7}, 0}};
    };
    const TensorForm made = formAt({transposed(2), transposed(4)}, 9);
    EXPECT_EQ(made.sizes, (Numbers{7, 9}));
    EXPECT_EQ(made.strides, (Numbers{1, 7}));
}

TEST(TensorForm, OfASliceLiesOnTheLineThroughTheRecords) {
    // The second third of a wider tensor.
    const auto slice = [](std::int64_t length) {
        return SizedForm{length, {{2, length, 5}, {15 * length, 15, 1}, 5 * length}};
    };
    const TensorForm made = formAt({slice(4), slice(6)}, 20);
    EXPECT_EQ(made.sizes, (Numbers{2, 20, 5}));
    EXPECT_EQ(made.strides, (Numbers{300, 15, 1}));
    EXPECT_EQ(made.offset, 100);
}

TEST(TensorForm, OfAScalarIsOne) {
    const TensorForm made = formAt({{4, {}}, {8, {}}}, 16);
    EXPECT_TRUE(made.sizes.empty());
    EXPECT_TRUE(made.strides.empty());
}

}  // namespace
}  // namespace hw::core

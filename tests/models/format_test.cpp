// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/models/format.h"

#include <gtest/gtest.h>

namespace hw::viewer {
namespace {

using core::Bytes;
using core::Nanoseconds;

TEST(Format, OneUnitForEverythingShownTogether) {
    const SizeUnit unit = SizeUnit::fitting(Bytes(10'061'179'152));
    EXPECT_EQ(unit.text(Bytes(10'061'179'152)), "10.06 GB");
    EXPECT_EQ(unit.text(Bytes(5'000'000)), "0.01 GB");
    EXPECT_EQ(SizeUnit::fitting(Bytes(48'700'000)).text(Bytes(48'700'000)), "48.70 MB");
    EXPECT_EQ(SizeUnit::fitting(Bytes(2'500)).text(Bytes(2'500)), "2.50 kB");
    EXPECT_EQ(SizeUnit::fitting(Bytes(999)).text(Bytes(999)), "999 B");
    EXPECT_EQ(SizeUnit::fitting(Bytes(0)).text(Bytes(0)), "0 B");
}

TEST(Format, TimesInMillisecondsWithDigitsForTheStep) {
    EXPECT_EQ(TimeFormat::fitting(Nanoseconds(291'905'487)).text(Nanoseconds(291'905'487)),
              "291.9 ms");
    EXPECT_EQ(TimeFormat::fitting(Nanoseconds(1'313'100'000)).text(Nanoseconds(1'313'100'000)),
              "1313 ms");
    EXPECT_EQ(TimeFormat::fitting(Nanoseconds(12'345'678)).text(Nanoseconds(12'345'678)),
              "12.35 ms");
    EXPECT_EQ(TimeFormat::fitting(Nanoseconds(10)).text(Nanoseconds(1'500)), "0.002 ms");
    EXPECT_EQ(nanoseconds(milliseconds(Nanoseconds(123'456'789))), Nanoseconds(123'456'789));
}

TEST(Format, LongTimesInSecondsAndMinutes) {
    constexpr std::int64_t kSecond = 1'000'000'000;
    const TimeFormat seconds = TimeFormat::fitting(Nanoseconds(62 * kSecond));
    EXPECT_EQ(seconds.text(Nanoseconds(61'934'000'000)), "61.93 s");
    EXPECT_EQ(seconds.axisUnit(), "ms") << "axes count milliseconds";
    EXPECT_EQ(TimeFormat::fitting(Nanoseconds(300 * kSecond)).text(Nanoseconds(90 * kSecond)),
              "90.0 s");
    EXPECT_EQ(TimeFormat::fitting(Nanoseconds(1500 * kSecond)).text(Nanoseconds(1500 * kSecond)),
              "25.0 min");
    EXPECT_EQ(secondsText(0.05), "0.050 s");
    EXPECT_EQ(secondsText(900), "15.0 min");
}

TEST(Format, CategoriesHaveOneName) {
    EXPECT_EQ(categoryText(core::Category::Unknown), "uncategorised");
    EXPECT_EQ(categoryText(core::Category::Activation), "activation");
}

TEST(Format, RatiosAndNames) {
    EXPECT_EQ(overheadText(1.08976), "+8.98 %");
    EXPECT_EQ(overheadText(0.99999999), "+0.00 %");
    EXPECT_EQ(overheadText(0.97), "-3.00 %");
    EXPECT_EQ(percentText(0.5), "50 %");
    EXPECT_EQ(shortOpName("aten::convolution_backward"), "convolution_backward");
    EXPECT_EQ(shortOpName("relu"), "relu");
    EXPECT_EQ(shortKernelName("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float> "
                              ">(at::native::ReduceOp<float>)"),
              "reduce_kernel");
    EXPECT_EQ(shortKernelName("void (anonymous namespace)::softmax_warp_forward<float, 4>(int)"),
              "softmax_warp_forward");
    EXPECT_EQ(shortKernelName("void at::native::(anonymous namespace)::indexing<float>(int)"),
              "indexing");
    EXPECT_EQ(shortKernelName("volta_sgemm_128x64_nn"), "volta_sgemm_128x64_nn");
    EXPECT_EQ(shortKernelName("Memcpy DtoD (Device -> Device)"), "Memcpy DtoD");
    EXPECT_EQ(shortKernelName(""), "");
}

}  // namespace
}  // namespace hw::viewer

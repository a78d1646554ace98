// SPDX-License-Identifier: MIT
// Sizes as people write them.
#include "core/base/parse_bytes.h"

#include <gtest/gtest.h>

#include <clocale>

namespace hw::core {
namespace {

TEST(ParseBytes, UnitsAreDecimalOrBinary) {
    EXPECT_EQ(*parseBytes("123456"), Bytes(123456));
    EXPECT_EQ(*parseBytes("20GB"), Bytes(20'000'000'000));
    EXPECT_EQ(*parseBytes(" 500 MB"), Bytes(500'000'000));
    EXPECT_EQ(*parseBytes("1.5 KiB"), Bytes(1536));
    EXPECT_EQ(*parseBytes("2e3 kB"), Bytes(2'000'000));
}

TEST(ParseBytes, WhatIsNoSizeIsRefusedInItsOwnWords) {
    for (const char* text : {"", " ", "lots", "GB", "0", "-4GB", "1,5 GB", "20 Giga", "4GB ", "nan",
                             "inf", "1e30", "99999999999TB"}) {
        const auto parsed = parseBytes(text);
        ASSERT_FALSE(parsed) << text;
        EXPECT_EQ(parsed.error().code, ErrorCode::Usage);
        EXPECT_EQ(parsed.error().what, "'" + std::string(text) + "' is no size");
        EXPECT_FALSE(parsed.error().hint.empty());
    }
}

TEST(ParseBytes, AShareIsNoSize) {
    const auto parsed = parseBytes("0.7");
    ASSERT_FALSE(parsed);
    EXPECT_NE(parsed.error().what.find("less than a byte"), std::string::npos);
    EXPECT_NE(parsed.error().hint.find("--ratio"), std::string::npos);
}

// The window has the user's locale, in which a comma may be the decimal point.
TEST(ParseBytes, NoLocaleChangesIt) {
    const char* const german = std::setlocale(LC_ALL, "de_DE.UTF-8");
    if (german == nullptr)
        GTEST_SKIP() << "no such locale: localedef -i de_DE -f UTF-8 de_DE.UTF-8";
    const auto parsed = parseBytes("1.5GB");
    std::setlocale(LC_ALL, "C");
    ASSERT_TRUE(parsed);
    EXPECT_EQ(*parsed, Bytes(1'500'000'000));
}

}  // namespace
}  // namespace hw::core

// SPDX-License-Identifier: GPL-3.0-or-later
#include <gtest/gtest.h>

#include "viewer/platform_check.h"

namespace hw::viewer {
namespace {

TEST(Platform, NamesWhatKeepsQtFromOpeningWindows) {
    const auto library = platformError(
        "qt.core.plugin.loader: Cannot load library libqxcb.so: (libxcb-cursor.so.0: cannot open "
        "shared object file: No such file or directory)\nqt.qpa.plugin: Could not load the Qt "
        "platform plugin \"xcb\" in \"\" even though it was found.\n",
        ":0");
    EXPECT_EQ(library.what, "the window needs libxcb-cursor.so.0");
    EXPECT_NE(library.hint.find("libxcb-cursor0"), std::string::npos);
    const auto display = platformError("qt.qpa.xcb: could not connect to display :7\n", ":7");
    EXPECT_EQ(display.what, "the display ':7' does not answer");
    EXPECT_EQ(platformError("", ":7").what, display.what);  // it waited for ever
    const auto other = platformError(
        "noise\nqt.qpa.plugin: Could not find the Qt platform plugin \"x\" in \"\"\nmore\n", "");
    EXPECT_EQ(other.what,
              "Qt can open no window here: Could not find the Qt platform plugin \"x\" in \"\"");
}

}  // namespace
}  // namespace hw::viewer

// SPDX-License-Identifier: GPL-3.0-or-later
// What Qt's windows need of the system; without Qt, so that programs that have no window can say
// it, too.
#pragma once

namespace hw::viewer {

constexpr const char* kInstallNeeded =
    "install the system's package that has it; on Debian and Ubuntu: apt-get install libgl1 "
    "libegl1 libxkbcommon0 libfontconfig1 libdbus-1-3 libglib2.0-0 fonts-dejavu-core "
    "libxcb-cursor0 libxkbcommon-x11-0 libxcb-icccm4 libxcb-image0 libxcb-keysyms1 "
    "libxcb-render-util0 libxcb-shape0 libxcb-xinerama0";

}  // namespace hw::viewer

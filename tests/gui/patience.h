// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

namespace hw::viewer {

/// Milliseconds; only a hang lasts so long.
inline constexpr int kPatience = 120'000;

}  // namespace hw::viewer

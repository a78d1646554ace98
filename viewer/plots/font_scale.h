// SPDX-License-Identifier: GPL-3.0-or-later
// How large all text is, over the size that the design gives it.
#pragma once

namespace hw::viewer {

inline constexpr double kSmallestText = 0.8, kLargestText = 1.6, kTextStep = 0.1;

double fontScale();
/// Within the limits; takes effect with the next style sheet and applyTheme().
void setFontScale(double scale);

}  // namespace hw::viewer

// SPDX-License-Identifier: GPL-3.0-or-later
// Colours that are worked out: the ink that reads on a fill, the colour of a change.
#pragma once

#include <QColor>

namespace hw::viewer {

/// Contrast of two colours by WCAG 2.1 (relative luminance), 1 to 21.
double contrast(const QColor& a, const QColor& b);

/// Of a dark and a light ink the one that reads better on this fill, whatever the theme.
QColor inkOn(const QColor& fill);

/// Of a part that has so much more (1: it is new) or less (-1: it is gone) than before; orange and
/// blue are told apart by every eye.
QColor changeColour(double share);

}  // namespace hw::viewer

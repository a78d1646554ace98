// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

namespace hw::viewer {

/// Whether a plot is so low that every row of pixels counts: its curves come before what is written
/// around them.
inline bool isLow(const QWidget& plot) {
    constexpr int kLow = 230;  // pixels
    return plot.height() < kLow;
}

}  // namespace hw::viewer

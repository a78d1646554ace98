// SPDX-License-Identifier: GPL-3.0-or-later
// Views of the window that lie behind others.
#pragma once

#include <gtest/gtest.h>

#include <QDockWidget>
#include <QTest>

#include "tests/gui/patience.h"

namespace hw::viewer {

/// Brings the dock of that name to the front, and waits until `view` in it is to be seen.
inline void raiseDock(QWidget& window, const char* dock, const QWidget& view) {
    auto* found = window.findChild<QDockWidget*>(QLatin1String(dock));
    ASSERT_NE(found, nullptr);
    found->raise();
    ASSERT_TRUE(QTest::qWaitFor([&] { return !view.visibleRegion().isEmpty(); }, kPatience));
}

}  // namespace hw::viewer

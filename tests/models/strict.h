// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAbstractItemModelTester>

namespace hw::viewer {

/// A model that breaks the rules ends the test.
inline constexpr auto kStrict = QAbstractItemModelTester::FailureReportingMode::Fatal;

}  // namespace hw::viewer

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QCoreApplication>
#include <QString>

namespace hw::viewer::reports {

/// A text of a report in the user's language.
inline QString tr(const char* text) {
    return QCoreApplication::translate("Report", text);
}

}  // namespace hw::viewer::reports

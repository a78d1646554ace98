// SPDX-License-Identifier: GPL-3.0-or-later
// What each view shows and how it is used: the window's context help.
#pragma once

#include <QString>

namespace hw::viewer {

/// Rich text on the view of that name ("timeline", "whatif", …); empty for an unknown one.
QString panelHelp(const QString& name);

}  // namespace hw::viewer

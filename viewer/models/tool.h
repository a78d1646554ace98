// SPDX-License-Identifier: GPL-3.0-or-later
// `highwater` itself as a tool of the window: what may be killed or take long runs in a process of
// its own.
#pragma once

#include <QString>

namespace hw::viewer {

/// The `highwater` that lies beside the running program.
QString toolProgram();

struct ToolError {
    QString what, hint;
};
/// The last "highwater: error: …" and "hint: …" of what the tool said on stderr.
ToolError toolError(const QString& said);

}  // namespace hw::viewer

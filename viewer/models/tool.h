// SPDX-License-Identifier: GPL-3.0-or-later
// `highwater` itself as a tool of the window: what may be killed or take long runs in a process of
// its own.
#pragma once

#include <QString>

namespace hw::viewer {

/// The `highwater` that lies beside the running program.
QString toolProgram();

/// What a command runs, in a word: "/usr/bin/python3 -u train.py --steps 5" → "train.py"; without a
/// script the program's name.
QString programName(const QString& command);

struct ToolError {
    QString what, hint;
};
/// The last "highwater: error: …" and "hint: …" of what the tool said on stderr.
ToolError toolError(const QString& said);
/// The last whole "highwater: …" of what it said on stderr that is no error; empty where there is
/// none.
QString toolProgress(const QString& said);

}  // namespace hw::viewer

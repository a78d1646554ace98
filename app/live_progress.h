// SPDX-License-Identifier: GPL-3.0-or-later
// A live run told step by step, for those who look on: `--progress FILE`.
#pragma once

#include <fstream>
#include <string>

#include "app/cli.h"
#include "profiler/attach/live_run.h"

namespace hw::app {

inline constexpr const char* kProgressHelp =
    "Append a line of JSON to this file for each step as it ends (docs/train.md)";

/// Appends one JSON object a line, as soon as there is something to tell (docs/train.md).
class LiveProgress {
public:
    /// Without a path nothing is told. Errors: Usage (the file cannot be written).
    core::Status open(const std::string& path);

    /// Whether there is such a file.
    bool wanted() const { return file_.is_open(); }
    void step(const profiler::LiveStep& step);
    /// `report`: that of the whole run.
    void ended(const Json& report);

private:
    void line(const Json& event);

    std::ofstream file_;
};

}  // namespace hw::app

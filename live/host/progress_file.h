// SPDX-License-Identifier: MIT
// A live run told step by step, for those who look on: `--progress FILE`.
#pragma once

#include <fstream>
#include <string>

#include "live/host/json.h"
#include "live/host/live_run.h"

namespace hw::live {

/// Appends one JSON object a line, as soon as there is something to tell (docs/train.md).
class ProgressFile {
public:
    /// Without a path nothing is told. Errors: Usage (the file cannot be written).
    core::Status open(const std::string& path);

    /// Whether there is such a file.
    bool wanted() const { return file_.is_open(); }
    void step(const LiveStep& step);
    /// `report`: that of the whole run. Errors: Internal (a line was not written).
    core::Status ended(const Json& report);

private:
    void line(const Json& event);

    std::string path_;
    std::ofstream file_;
};

}  // namespace hw::live

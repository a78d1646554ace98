// SPDX-License-Identifier: MIT
// Ops of a program that came back with other bytes in a live run: what they make stays when the
// program starts again (live/runtime/mismatch.h). Kept in the user's cache, by command and folder.
#pragma once

#include <string>
#include <vector>

#include "profiler/wire/records.h"

namespace hw::live {

/// As the runtime reads them, a line each; empty: none is known.
std::string keptOps(const std::vector<std::string>& command, const std::string& folder);

/// From now on they are known, too. Where the file cannot be written, nothing happens: the next
/// run is verified like this one.
void rememberMismatches(const std::vector<std::string>& command, const std::string& folder,
                        const std::vector<profiler::wire::LiveMismatchRecord>& mismatches);

}  // namespace hw::live

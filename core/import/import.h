// SPDX-License-Identifier: MIT
// Foreign formats become sessions.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/import/format.h"
#include "core/session/session_writer.h"

namespace hw::core {

struct ImportSummary {
    std::string format;  // its name: "simrd", "kineto", …
    SessionCounts counts;
    Joined join;
};

/// "simrd, torch-snapshot, …": what importFile knows by name.
std::string importFormats();
/// "*.log", "*.json", …: names that files of these formats have; each once.
std::vector<std::string> importPatterns();

/// Reads `path` (plain or gzip; the format is found by its contents unless named) into `session`,
/// which must be empty. `join` names the profiler's trace of the same run that gives an execution
/// trace its times. Errors: BadInput with the place that is wrong; Usage for an unknown format, or
/// a `join` that the format does not take.
Result<ImportSummary> importFile(const std::string& path, const std::string& format,
                                 SessionWriter& session, const std::string& join = {});

/// Opens `path`: a session as it is (read only), any importable file through an in-memory session.
Result<Session> openAny(const std::string& path);

}  // namespace hw::core

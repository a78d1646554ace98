// SPDX-License-Identifier: MIT
// Foreign formats become sessions.
#pragma once

#include <optional>
#include <string>

#include "core/base/result.h"
#include "core/import/execution_trace.h"
#include "core/session/session_writer.h"

namespace hw::core {

struct ImportSummary {
    std::string format;  // "simrd", "torch-snapshot", "kineto", "execution-trace", "nsight"
    SessionCounts counts;
    std::optional<JoinRate> join;  // of an execution trace with a profiler's trace
};

/// "simrd, torch-snapshot, …": what importFile knows by name.
std::string importFormats();

/// Reads `path` (plain or gzip; the format is found by its contents unless named) into `session`,
/// which must be empty. `join` names the profiler's trace of the same run that gives an execution
/// trace its times. Errors: BadInput with the place that is wrong; Usage for an unknown format, or
/// a `join` that the format does not take.
Result<ImportSummary> importFile(const std::string& path, const std::string& format,
                                 SessionWriter& session, const std::string& join = {});

/// Opens `path`: a session as it is (read only), any importable file through an in-memory session.
Result<Session> openAny(const std::string& path);

}  // namespace hw::core

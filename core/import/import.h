// SPDX-License-Identifier: MIT
// Foreign formats become sessions.
#pragma once

#include <string>

#include "core/base/result.h"
#include "core/session/session.h"

namespace hw::core {

struct ImportSummary {
    std::string format;  // "simrd"
    SessionCounts counts;
};

/// Reads `path` (plain or gzip; the format is found by its contents unless named) into `session`,
/// which must be empty. Errors: BadInput with the line that is wrong.
Result<ImportSummary> importFile(const std::string& path, const std::string& format,
                                 Session& session);

/// Opens `path`: a session as it is (read only), any importable file through an in-memory session.
Result<Session> openAny(const std::string& path);

}  // namespace hw::core

// SPDX-License-Identifier: MIT
// The tables of a session as CSV files.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/session/session.h"

namespace hw::core {

/// Names of the tables that are written: those of the schema, with `memory_events` and
/// `series_samples` (one a line) in place of the blocks that they are stored in.
Result<std::vector<std::string>> csvTables(const Session& session);

/// Writes `folder`/TABLE.csv for every table; makes the folder. The first line names the columns,
/// quotes are doubled, NULL is empty, blobs are hexadecimal. Errors: BadInput.
Status exportCsv(const Session& session, const std::string& folder);

/// Writes one table to the file `path`. Errors: Usage when there is no such table, BadInput.
Status exportCsvTable(const Session& session, const std::string& table, const std::string& path);

}  // namespace hw::core

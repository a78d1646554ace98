// SPDX-License-Identifier: MIT
// What is wrong with a session file, and what of it is lost. Private to core/session.
#pragma once

#include <string>

#include "core/session/database.h"

namespace hw::core {

struct Damage {
    bool inTables = false;   // rows are lost
    bool inIndexes = false;  // the rows are there; REINDEX puts it right
    std::string lost;        // ": steps 2 to 4 of 5 are lost; …"; empty when nothing can be told
};

/// False where a file was cut: SQLite reads the rest of its last page as zeros.
bool isComplete(Database& database, const std::string& path);

/// Reads the whole file. Never throws: what cannot be read is what is lost.
Damage findDamage(Database& database);

}  // namespace hw::core

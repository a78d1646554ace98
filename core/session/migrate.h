// SPDX-License-Identifier: MIT
// From every released schema version to the present one. Private to core/session.
#pragma once

#include "core/session/database.h"

namespace hw::core {

/// Brings a session of an older version up to kSessionSchemaVersion, in one transaction: all of it
/// or nothing. Throws DatabaseError.
void migrate(Database& database);

}  // namespace hw::core

// SPDX-License-Identifier: MIT
// A session is data: what would compute when it is read has no place in it. Private to
// core/session.
#pragma once

#include <string>

#include "core/session/database.h"

namespace hw::core {

/// What a file holds that no session has (a view, a trigger, a virtual table, a generated column,
/// an index on an expression), in words; empty: nothing. Throws DatabaseError.
std::string foreignParts(Database& database);

}  // namespace hw::core

// SPDX-License-Identifier: MIT
// What went wrong with a session's file, in words. Private to core/session.
#pragma once

#include <string>

#include "core/base/result.h"
#include "core/session/database.h"

namespace hw::core {

/// Another connection holds a lock: nothing is wrong with the file.
bool isLocked(const DatabaseError& error);

/// `doing`, such as "reading ops", failed. A lock is named with the process that holds it, as far
/// as the system tells.
Error sessionError(const std::string& path, const std::string& doing, const DatabaseError& error);

}  // namespace hw::core

// SPDX-License-Identifier: MIT
// The database under a session, for what belongs to core/session but not to the class. Private to
// it.
#pragma once

#include "core/session/database.h"
#include "core/session/session.h"

namespace hw::core {

struct SessionAccess {
    static Database& database(const Session& session) { return *session.database_; }
};

inline Database& databaseOf(const Session& session) {
    return SessionAccess::database(session);
}

}  // namespace hw::core

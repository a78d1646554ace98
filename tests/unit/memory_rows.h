// SPDX-License-Identifier: MIT
// What imported sessions are asked in tests: figures by SQL, gaps by name.
#pragma once

#include <string>

#include "core/import/import.h"
#include "core/session/database.h"
#include "tests/unit/test_data.h"

namespace hw::test {

inline std::int64_t figure(core::Session& session, const std::string& sql) {
    core::Statement statement(session.database(), sql);
    return statement.step() ? statement.integer(0) : -1;
}
inline std::string text(core::Session& session, const std::string& sql) {
    core::Statement statement(session.database(), sql);
    return statement.step() ? statement.text(0) : std::string("(none)");
}
inline bool hasGap(core::Session& session, const std::string& what) {
    const auto gaps = session.gaps();
    if (!gaps) return false;
    for (const core::GapRow& gap : *gaps)
        if (gap.what == what && !gap.why.empty()) return true;
    return false;
}

}  // namespace hw::test

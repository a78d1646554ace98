// SPDX-License-Identifier: MIT
// What imported sessions are asked in tests: figures by SQL, gaps by name.
#pragma once

#include <stdexcept>
#include <string>

#include "core/import/import.h"
#include "core/session/access.h"
#include "tests/unit/test_data.h"

namespace hw::test {

/// Memory events lie in blocks: SQL that asks for `memory_events` sees them as a table.
inline void showMemoryEvents(const core::Session& session, const std::string& sql) {
    if (sql.find("memory_events") == std::string::npos) return;
    core::Statement made(core::databaseOf(session),
                         "SELECT 1 FROM sqlite_temp_master WHERE name = 'memory_events'");
    if (made.step()) return;
    const auto events = session.memoryEvents();
    if (!events) throw std::runtime_error(events.error().what);
    core::databaseOf(session).execute(
        "CREATE TEMP TABLE memory_events(id INTEGER PRIMARY KEY, seq, device, time_ns, kind,"
        " address, bytes, allocated_bytes, reserved_bytes, op)");
    core::Statement add(core::databaseOf(session),
                        "INSERT INTO temp.memory_events VALUES(?,?,?,?,?,?,?,?,?,?)");
    std::int64_t id = 0;
    for (const core::MemoryEventRow& event : *events) {
        add.bind(1, id++).bind(2, event.seq).bind(3, event.device).bind(4, event.timeNs);
        add.bind(5, event.kind).bind(6, event.address).bind(7, event.bytes.count());
        add.bind(8, event.allocated).bind(9, event.reserved).bind(10, event.op).execute();
    }
}

inline std::int64_t figure(const core::Session& session, const std::string& sql) {
    showMemoryEvents(session, sql);
    core::Statement statement(core::databaseOf(session), sql);
    return statement.step() ? statement.integer(0) : -1;
}
inline std::string text(const core::Session& session, const std::string& sql) {
    showMemoryEvents(session, sql);
    core::Statement statement(core::databaseOf(session), sql);
    return statement.step() ? statement.text(0) : std::string("(none)");
}
inline bool hasGap(const core::Session& session, const std::string& what) {
    const auto gaps = session.gaps();
    if (!gaps) return false;
    for (const core::GapRow& gap : *gaps)
        if (gap.what == what && !gap.why.empty()) return true;
    return false;
}

}  // namespace hw::test

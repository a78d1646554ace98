// SPDX-License-Identifier: MIT
#include "core/session/migrate.h"

#include "core/session/live_series.h"
#include "core/session/memory_events.h"
#include "core/session/session.h"

namespace hw::core {
namespace {

// Version 2: memory events in blocks instead of rows; series with their samples, and filled;
// categories as recorded beside those that rules set. The tables stay as they are written here,
// whatever schema.sql becomes.
constexpr const char* kSeriesTables = R"(
ALTER TABLE storages ADD COLUMN recorded_category TEXT;
CREATE TABLE memory_chunks (
    first_event INTEGER PRIMARY KEY, count INTEGER NOT NULL,
    begin_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL, data BLOB NOT NULL);
CREATE INDEX memory_chunks_time ON memory_chunks(end_ns, begin_ns);
DROP TABLE series;
DROP TABLE series_buckets;
CREATE TABLE series (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, unit TEXT NOT NULL, axis TEXT NOT NULL,
    step INTEGER, device INTEGER);
CREATE TABLE series_buckets (
    series INTEGER NOT NULL, level INTEGER NOT NULL, bucket INTEGER NOT NULL,
    begin INTEGER NOT NULL, end INTEGER NOT NULL,
    minimum INTEGER NOT NULL, maximum INTEGER NOT NULL, argmax INTEGER NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (series, level, bucket)) WITHOUT ROWID;
CREATE TABLE series_blocks (
    series INTEGER NOT NULL, block INTEGER NOT NULL, count INTEGER NOT NULL, data BLOB NOT NULL,
    PRIMARY KEY (series, block));
)";

// Version 3: a step's rows may lie in one blob. Version 2 was kept while these tables came, one by
// one: a file of it has some of them.
constexpr const char* kTablesSinceVersion2 = R"(
CREATE TABLE IF NOT EXISTS ranges (
    id INTEGER PRIMARY KEY, kind TEXT NOT NULL, name TEXT NOT NULL, thread INTEGER,
    begin_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS menus (step INTEGER PRIMARY KEY, document TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS implementation_signatures (
    op INTEGER NOT NULL, name TEXT NOT NULL, of INTEGER NOT NULL, position INTEGER NOT NULL,
    bytes INTEGER NOT NULL, output INTEGER, begin_event INTEGER NOT NULL, end_event INTEGER,
    PRIMARY KEY (op, name, of, position)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS ranks (
    process INTEGER PRIMARY KEY REFERENCES processes(id),
    world_size INTEGER, run TEXT NOT NULL, clock_offset_ns INTEGER, clock_error_ns INTEGER);
CREATE TABLE IF NOT EXISTS source_frames (
    id INTEGER PRIMARY KEY, file TEXT NOT NULL, function TEXT NOT NULL, line INTEGER NOT NULL,
    framework INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS stacks (
    id INTEGER PRIMARY KEY,
    parent INTEGER REFERENCES stacks(id), frame INTEGER NOT NULL REFERENCES source_frames(id));
CREATE TABLE IF NOT EXISTS op_stacks (
    op INTEGER PRIMARY KEY, stack INTEGER NOT NULL REFERENCES stacks(id));
CREATE TABLE IF NOT EXISTS packed_steps (step INTEGER PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS storage_stacks (
    storage INTEGER PRIMARY KEY, stack INTEGER NOT NULL REFERENCES stacks(id));
)";

void moveMemoryEvents(Database& database) {
    Statement from(database,
                   "SELECT time_ns, kind, address, bytes, allocated_bytes, reserved_bytes, device,"
                   " op"
                   " FROM memory_events ORDER BY id");
    MemoryEventWriter writer(database);
    MemoryEventRow row;
    while (from.step()) {
        row.timeNs = from.integer(0);
        row.kind = from.text(1);
        row.address = from.optionalInteger(2);
        row.bytes = Bytes(from.integer(3));
        row.allocated = from.optionalInteger(4);
        row.reserved = from.optionalInteger(5);
        row.device = from.integer(6);
        row.op = from.optionalInteger(7);
        writer.append(row);
    }
    writer.flush();
}

void writeCurves(Database& database) {
    Statement from(database, "SELECT id, first_seq, end_seq FROM steps ORDER BY id");
    while (from.step()) {
        StepRow step;
        step.id = from.integer(0);
        step.firstSeq = from.integer(1);
        step.endSeq = from.integer(2);
        writeLiveSeries(database, step, {});
    }
}

void fromVersion1(Database& database) {
    database.execute(kSeriesTables);
    moveMemoryEvents(database);
    database.execute("DROP TABLE memory_events");
    writeCurves(database);
    database.execute("PRAGMA user_version = 2");
}

void fromVersion2(Database& database) {
    database.execute(kTablesSinceVersion2);
    database.execute("PRAGMA user_version = 3");
}

}  // namespace

void migrate(Database& database) {
    database.execute("BEGIN IMMEDIATE");
    try {
        // Another process may have been faster.
        if (database.pragma("user_version") == 1) fromVersion1(database);
        if (database.pragma("user_version") == 2) fromVersion2(database);
        database.execute("COMMIT");
    } catch (const DatabaseError&) {
        Statement(database, "ROLLBACK").execute();
        throw;
    }
}

}  // namespace hw::core

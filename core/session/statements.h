// SPDX-License-Identifier: MIT
// The prepared inserts of a session. Private to core/session.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "core/session/database.h"
#include "core/session/row_inserts.h"
#include "core/session/session_writer.h"

namespace hw::core {

struct SessionWriter::Statements {
    explicit Statements(Database& database)
        : rows(database, ""),
          freed(database, "UPDATE storages SET free_seq = ?2 WHERE id = ?1"),
          resized(database, "UPDATE storages SET bytes = ?2 WHERE id = ?1"),
          category(database,
                   "UPDATE storages SET category = ?2, layer = coalesce(?3, layer) WHERE id = ?1"),
          step(database,
               "INSERT INTO steps(id, process, first_seq, end_seq, begin_ns, end_ns,"
               " allocator_begin_bytes, allocator_peak_bytes, environment)"
               " VALUES(?,?,?,?,?,?,?,?,?)"),
          final(database, "INSERT INTO final_tensors VALUES(?,?,?)"),
          contents(database, "INSERT OR IGNORE INTO contents VALUES(?,?,?)") {}

    RowInserts rows;
    Statement freed, resized, category, step, final, contents;
};

// Older sessions lack the tables of call stacks: prepared only where one is written.
struct SessionWriter::StackStatements {
    explicit StackStatements(Database& database)
        : frame(database, "INSERT INTO source_frames VALUES(?,?,?,?,?)"),
          stack(database, "INSERT INTO stacks VALUES(?,?,?)") {}

    Statement frame, stack;
};

// Older sessions lack the table of ranges: prepared only where a trace of a device is written.
struct SessionWriter::DeviceStatements {
    explicit DeviceStatements(Database& database)
        : find(database, "SELECT id FROM devices WHERE kind = ? AND ordinal = ?"),
          device(database,
                 "INSERT INTO devices(process, kind, ordinal)"
                 " VALUES((SELECT coalesce(min(id), 1) FROM processes),?,?)"),
          describe(database, "UPDATE devices SET name = ?2, capacity_bytes = ?3 WHERE id = ?1"),
          kernel(database,
                 "INSERT INTO kernels(device, stream, name, begin_ns, end_ns, op, correlation)"
                 " VALUES(?,?,?,?,?,?,?)"),
          copy(database,
               "INSERT INTO copies(device, stream, kind, bytes, begin_ns, end_ns, op)"
               " VALUES(?,?,?,?,?,?,?)"),
          range(database,
                "INSERT INTO ranges(kind, name, thread, begin_ns, end_ns) VALUES(?,?,?,?,?)") {}

    Statement find, device, describe, kernel, copy, range;
    std::map<std::pair<std::string, std::int64_t>, std::int64_t> known;  // ids of devices
};

}  // namespace hw::core

// SPDX-License-Identifier: MIT
// The prepared inserts of a session. Private to core/session.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "core/session/database.h"
#include "core/session/session_writer.h"

namespace hw::core {

struct SessionWriter::Statements {
    explicit Statements(Database& database)
        : op(database,
             "INSERT INTO ops(id, seq, name, overload, phase, layer, thread, begin_ns, duration_ns,"
             " workspace_bytes, live_bytes, random, args) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?)"),
          input(database, "INSERT INTO op_inputs VALUES(?,?,?,?)"),
          output(database, "INSERT INTO op_outputs VALUES(?,?,?,?)"),
          write(database, "INSERT INTO op_writes VALUES(?,?,?)"),
          storage(database,
                  "INSERT INTO storages(id, bytes, device, category, layer, creator, alloc_seq,"
                  " free_seq, address) VALUES(?,?,?,?,?,?,?,?,?)"),
          tensor(database,
                 "INSERT INTO tensors(id, storage, creator, dtype, sizes, strides, offset)"
                 " VALUES(?,?,?,?,?,?,?)"),
          freed(database, "UPDATE storages SET free_seq = ?2 WHERE id = ?1"),
          resized(database, "UPDATE storages SET bytes = ?2 WHERE id = ?1"),
          category(database,
                   "UPDATE storages SET category = ?2, layer = coalesce(?3, layer) WHERE id = ?1") {
    }

    Statement op, input, output, write, storage, tensor, freed, resized, category;
};

// Older sessions lack the tables of call stacks: prepared only where one is written.
struct SessionWriter::StackStatements {
    explicit StackStatements(Database& database)
        : frame(database, "INSERT INTO source_frames VALUES(?,?,?,?,?)"),
          stack(database, "INSERT INTO stacks VALUES(?,?,?)"),
          ofOp(database, "INSERT INTO op_stacks VALUES(?,?)"),
          ofStorage(database, "INSERT INTO storage_stacks VALUES(?,?)") {}

    Statement frame, stack, ofOp, ofStorage;
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

// SPDX-License-Identifier: MIT
// The prepared inserts of a session. Private to core/session.
#pragma once

#include "core/session/database.h"
#include "core/session/session.h"

namespace hw::core {

struct Session::Statements {
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

}  // namespace hw::core

// SPDX-License-Identifier: MIT
#include "core/session/row_inserts.h"

namespace hw::core {
namespace {

void insertEdge(Statement& to, std::int64_t op, std::size_t position, std::int64_t tensor,
                std::int64_t value) {
    to.bind(1, op).bind(2, static_cast<std::int64_t>(position)).bind(3, tensor);
    to.bind(4, value).execute();
}

}  // namespace

RowInserts::RowInserts(Database& database, const std::string& prefix)
    : database_(database),
      prefix_(prefix),
      op_(database, "INSERT INTO " + prefix +
                        "ops(id, seq, name, overload, phase, layer, thread, begin_ns, duration_ns,"
                        " workspace_bytes, live_bytes, random, args)"
                        " VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?)"),
      input_(database, "INSERT INTO " + prefix + "op_inputs VALUES(?,?,?,?)"),
      output_(database, "INSERT INTO " + prefix + "op_outputs VALUES(?,?,?,?)"),
      write_(database, "INSERT INTO " + prefix + "op_writes VALUES(?,?,?)"),
      storage_(database, "INSERT INTO " + prefix +
                             "storages(id, bytes, device, category, layer, creator, alloc_seq,"
                             " free_seq, address) VALUES(?,?,?,?,?,?,?,?,?)"),
      tensor_(database, "INSERT INTO " + prefix +
                            "tensors(id, storage, creator, dtype, sizes, strides, offset)"
                            " VALUES(?,?,?,?,?,?,?)") {}

Statement& RowInserts::stackOf(std::optional<Statement>& statement, const char* table) {
    if (!statement) statement.emplace(database_, "INSERT INTO " + prefix_ + table + " VALUES(?,?)");
    return *statement;
}

void RowInserts::insert(const OpRow& row) {
    op_.bind(1, row.id).bind(2, row.seq).bind(3, row.name).bind(4, row.overload);
    op_.bind(5, phaseName(row.phase)).bind(6, row.layer).bind(7, row.thread).bind(8, row.beginNs);
    op_.bind(9, row.duration.count()).bind(10, row.workspace.count()).bind(11, row.liveBytes);
    op_.bind(12, std::int64_t{row.random});
    row.args.empty() ? op_.bindNull(13) : op_.bind(13, row.args);
    op_.execute();
    for (std::size_t i = 0; i < row.inputs.size(); ++i)
        insertEdge(input_, row.id, i, row.inputs[i].tensor, row.inputs[i].version);
    for (std::size_t i = 0; i < row.outputs.size(); ++i)
        insertEdge(output_, row.id, i, row.outputs[i].tensor, row.outputs[i].makesStorage);
    for (const OpRow::Write& write : row.writes)
        write_.bind(1, row.id)
            .bind(2, write.storage)
            .bind(3, std::int64_t{write.versionBefore})
            .execute();
    if (row.stack) stackOf(opStack_, "op_stacks").bind(1, row.id).bind(2, *row.stack).execute();
}

void RowInserts::insert(const StorageRow& row) {
    storage_.bind(1, row.id)
        .bind(2, row.bytes.count())
        .bind(3, row.device)
        .bind(4, categoryName(row.category))
        .bind(5, row.layer)
        .bind(6, row.creator)
        .bind(7, row.allocSeq)
        .bind(8, row.freeSeq)
        .bind(9, row.address)
        .execute();
    if (row.stack)
        stackOf(storageStack_, "storage_stacks").bind(1, row.id).bind(2, *row.stack).execute();
}

void RowInserts::insert(const TensorRow& row) {
    tensor_.bind(1, row.id)
        .bind(2, row.storage)
        .bind(3, row.creator)
        .bind(4, row.dtype)
        .bind(5, row.sizes)
        .bind(6, row.strides)
        .bind(7, row.offset)
        .execute();
}

void RowInserts::insert(const StepContents& rows) {
    for (const OpRow& row : rows.ops) insert(row);
    for (const StorageRow& row : rows.storages) insert(row);
    for (const TensorRow& row : rows.tensors) insert(row);
}

}  // namespace hw::core

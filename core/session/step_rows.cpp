// SPDX-License-Identifier: MIT
#include "core/session/step_rows.h"
#include "core/base/utf8.h"

#include <algorithm>
#include <array>
#include <deque>
#include <limits>
#include <string>
#include <utility>

#include "core/session/row_inserts.h"

namespace hw::core {
namespace {

constexpr const char* kPackedTable = "packed_steps";

StepContents unpacked(const Statement& from, int column, std::int64_t step, OpDetail detail) {
    StepContents rows;
    const std::string wrong = unpackStep(from.blob(column), detail, rows);
    if (!wrong.empty()) throw DamagedStep{{0, "step " + std::to_string(step) + " " + wrong}};
    return rows;
}

bool hasPacked(Database& database) {
    return database.hasTable(kPackedTable) &&
           Statement(database, "SELECT 1 FROM packed_steps LIMIT 1").step();
}

class EdgeReader {
public:
    explicit EdgeReader(Database& database)
        : inputs_(database, "SELECT tensor, version FROM op_inputs WHERE op = ? ORDER BY position"),
          outputs_(database,
                   "SELECT tensor, makes_storage FROM op_outputs WHERE op = ? ORDER BY position"),
          writes_(database,
                  "SELECT storage, version_before FROM op_writes WHERE op = ? ORDER BY storage") {}

    void read(OpRow& row) {
        for (inputs_.bind(1, row.id); inputs_.step();)
            row.inputs.push_back(
                {inputs_.integer(0), static_cast<std::int32_t>(inputs_.integer(1))});
        for (outputs_.bind(1, row.id); outputs_.step();)
            row.outputs.push_back({outputs_.integer(0), outputs_.integer(1) != 0});
        for (writes_.bind(1, row.id); writes_.step();)
            row.writes.push_back(
                {writes_.integer(0), static_cast<std::int32_t>(writes_.integer(1))});
        inputs_.reset(), outputs_.reset(), writes_.reset();
    }

private:
    Statement inputs_, outputs_, writes_;
};

constexpr const char* kOpColumns =
    "id, seq, name, overload, phase, layer, thread, begin_ns, duration_ns, workspace_bytes,"
    " live_bytes, random, device_ns, measured_ns, measured_workspace_bytes";

OpRow opOf(const Statement& from) {
    OpRow row;
    row.id = from.integer(0), row.seq = from.integer(1);
    row.name = shownName(from.text(2)), row.overload = shownName(from.text(3));
    row.phase = phaseFromName(from.text(4));
    row.layer = from.optionalInteger(5), row.thread = from.integer(6);
    row.beginNs = from.integer(7);
    row.duration = Nanoseconds(from.integer(8)), row.workspace = Bytes(from.integer(9));
    row.liveBytes = from.optionalInteger(10), row.random = from.integer(11) != 0;
    row.deviceNs = from.optionalInteger(12), row.measuredNs = from.optionalInteger(13);
    row.measuredWorkspace = from.integer(14);
    return row;
}

constexpr const char* kStorageColumns =
    "SELECT id, bytes, device, category, layer, creator, alloc_seq, free_seq, address"
    " FROM storages";
constexpr const char* kStorageOrder = " ORDER BY alloc_seq, id";

StorageRow storageOf(const Statement& from) {
    return {from.integer(0),
            Bytes(from.integer(1)),
            from.text(2),
            categoryFromName(from.text(3)),
            from.optionalInteger(4),
            from.optionalInteger(5),
            from.integer(6),
            from.optionalInteger(7),
            from.optionalInteger(8),
            std::nullopt};
}

// Call stacks are read by core/session/call_stacks.h alone.
std::vector<OpRow> takePackedOps(StepContents& packed) {
    for (OpRow& row : packed.ops) row.stack.reset();
    return std::move(packed.ops);
}

bool cameBefore(const StorageRow& a, const StorageRow& b) {
    return std::pair(a.allocSeq, a.id) < std::pair(b.allocSeq, b.id);
}

std::vector<StorageRow> allStorages(Database& database, const StepRow& step,
                                    const std::optional<StepContents>& packed) {
    Statement from(database, std::string(kStorageColumns) +
                                 " WHERE alloc_seq >= ?3 AND alloc_seq < ?2"
                                 " AND (free_seq IS NULL OR free_seq >= ?1)" +
                                 kStorageOrder);
    from.bind(1, step.firstSeq).bind(2, step.endSeq).bind(3, firstSeqOfProcess(step.firstSeq));
    std::vector<StorageRow> rows;
    while (from.step()) rows.push_back(storageOf(from));
    if (!packed) return rows;
    for (const StorageRow& row : packed->storages) rows.emplace_back(row).stack.reset();
    std::sort(rows.begin(), rows.end(), cameBefore);
    return rows;
}

/// Packed steps by their seqs, each one once.
class PackedInOrder {
public:
    PackedInOrder(Database& database, OpDetail detail) : database_(database), detail_(detail) {
        if (!database.hasTable(kPackedTable)) return;
        Statement from(database,
                       "SELECT id, first_seq FROM steps JOIN packed_steps ON step = id"
                       " ORDER BY first_seq");
        while (from.step()) waiting_.emplace_back(from.integer(0), from.integer(1));
    }

    /// The next one, if it begins before this seq.
    std::optional<StepContents> before(std::int64_t seq) {
        if (next_ == waiting_.size() || waiting_[next_].second > seq) return std::nullopt;
        return packedStep(database_, waiting_[next_++].first, detail_);
    }

private:
    Database& database_;
    OpDetail detail_;
    std::vector<std::pair<std::int64_t, std::int64_t>> waiting_;  // steps and their first seqs
    std::size_t next_ = 0;
};

std::vector<OpRow> opsInTables(Database& database, const StepRow& step, OpDetail detail) {
    const std::string arguments = detail == OpDetail::Everything ? ", args" : "";
    Statement from(database, std::string("SELECT ") + kOpColumns + arguments +
                                 " FROM ops WHERE seq >= ? AND seq < ? ORDER BY seq");
    std::optional<EdgeReader> edges;
    if (detail != OpDetail::Spans) edges.emplace(database);
    std::vector<OpRow> rows;
    for (from.bind(1, step.firstSeq).bind(2, step.endSeq); from.step();) {
        OpRow& row = rows.emplace_back(opOf(from));
        if (detail == OpDetail::Everything) row.args = from.text(15);
        if (edges) edges->read(row);
    }
    return rows;
}

}  // namespace

std::optional<StepContents> packedStep(Database& database, std::int64_t step, OpDetail detail) {
    if (!database.hasTable(kPackedTable)) return std::nullopt;
    Statement from(database, "SELECT data FROM packed_steps WHERE step = ?");
    if (!from.bind(1, step).step()) return std::nullopt;
    return unpacked(from, 0, step, detail);
}

void visitPackedSteps(
    Database& database, OpDetail detail,
    const std::function<void(std::int64_t step, const StepContents& rows)>& visit) {
    if (!database.hasTable(kPackedTable)) return;
    Statement from(database, "SELECT step, data FROM packed_steps ORDER BY step");
    while (from.step()) visit(from.integer(0), unpacked(from, 1, from.integer(0), detail));
}

PackedCounts countPacked(Database& database) {
    PackedCounts all;
    if (!database.hasTable(kPackedTable)) return all;
    Statement from(database, "SELECT step, data FROM packed_steps");
    while (from.step()) {
        const auto counts = packedCounts(from.blob(1));
        if (!counts)
            throw DamagedStep{{0, "step " + std::to_string(from.integer(0)) + " is damaged"}};
        all.ops += counts->ops, all.storages += counts->storages, all.tensors += counts->tensors;
    }
    return all;
}

std::vector<OpRow> readOps(Database& database, std::int64_t step, OpDetail detail) {
    Statement from(database, "SELECT first_seq, end_seq FROM steps WHERE id = ?");
    if (!from.bind(1, step).step()) return {};
    StepRow row;
    row.id = step, row.firstSeq = from.integer(0), row.endSeq = from.integer(1);
    return StepRows(database, row, detail).takeOps();
}

std::vector<StorageRow> readStorages(Database& database, const StepRow& step) {
    return allStorages(database, step, packedStep(database, step.id, OpDetail::Edges));
}

void visitOps(Database& database, const std::function<void(const OpRow&)>& visit) {
    PackedInOrder packed(database, OpDetail::Spans);
    const auto visitPacked = [&](std::int64_t before) {
        while (const auto step = packed.before(before))
            for (const OpRow& row : step->ops) visit(row);
    };
    Statement from(database, std::string("SELECT ") + kOpColumns + " FROM ops ORDER BY seq");
    while (from.step()) {
        visitPacked(from.integer(1));
        visit(opOf(from));
    }
    visitPacked(std::numeric_limits<std::int64_t>::max());
}

void visitStorages(Database& database, const std::function<void(const StorageRow&)>& visit) {
    PackedInOrder packed(database, OpDetail::Edges);
    std::deque<StorageRow> waiting;  // of the step that is under way
    const auto visitPacked = [&](const StorageRow& before) {
        while (true) {
            for (; !waiting.empty() && cameBefore(waiting.front(), before); waiting.pop_front())
                visit(waiting.front());
            auto step = waiting.empty() ? packed.before(before.allocSeq) : std::nullopt;
            if (!step) return;
            std::sort(step->storages.begin(), step->storages.end(), cameBefore);
            waiting.assign(step->storages.begin(), step->storages.end());
        }
    };
    Statement from(database, std::string(kStorageColumns) + kStorageOrder);
    while (from.step()) {
        const StorageRow row = storageOf(from);
        visitPacked(row);
        visit(row);
    }
    StorageRow last;
    last.allocSeq = last.id = std::numeric_limits<std::int64_t>::max();
    visitPacked(last);
}

StepRows::StepRows(Database& database, const StepRow& step, OpDetail detail)
    : database_(database),
      step_(step),
      detail_(detail),
      packed_(packedStep(database, step.id, detail)),
      tensor_(database,
              "SELECT storage, creator, dtype, sizes, strides, offset FROM tensors WHERE id = ?") {
    if (!packed_) return;
    for (const TensorRow& row : packed_->tensors) packedTensors_.emplace(row.id, &row);
}

std::vector<OpRow> StepRows::takeOps() {
    return packed_ ? takePackedOps(*packed_) : opsInTables(database_, step_, detail_);
}

std::vector<StorageRow> StepRows::storages() const {
    return allStorages(database_, step_, packed_);
}

const TensorRow* StepRows::tensor(std::int64_t id) {
    if (const auto at = packedTensors_.find(id); at != packedTensors_.end()) return at->second;
    const bool known = tensor_.bind(1, id).step();
    if (known)
        found_ = {id,
                  tensor_.integer(0),
                  tensor_.optionalInteger(1),
                  tensor_.text(2),
                  tensor_.text(3),
                  tensor_.text(4),
                  tensor_.integer(5)};
    tensor_.reset();
    return known ? &found_ : nullptr;
}

std::string showPackedRows(Database& database, const std::string& table) {
    static constexpr std::array kTables{"ops",       "op_inputs", "op_outputs", "op_writes",
                                        "op_stacks", "storages",  "tensors",    "storage_stacks"};
    if (std::find(kTables.begin(), kTables.end(), table) == kTables.end() || !hasPacked(database))
        return {};
    const std::string prefix = "temp.packed_";
    Statement made(database, "SELECT 1 FROM sqlite_temp_master WHERE name = 'packed_ops'");
    if (!made.step()) {
        for (const std::string name : kTables)
            if (database.hasTable(name))
                Statement(database, "CREATE TABLE " + prefix + name + " AS SELECT * FROM main." +
                                        name + " LIMIT 0")
                    .execute();
        RowInserts to(database, prefix);
        visitPackedSteps(database, OpDetail::Everything,
                         [&](std::int64_t, const StepContents& rows) { to.insert(rows); });
    }
    return prefix + table;
}

void unpackIntoTables(Database& database, std::int64_t step) {
    const auto packed = packedStep(database, step, OpDetail::Everything);
    if (!packed) return;
    database.execute("SAVEPOINT unpacking");
    try {
        RowInserts(database, "").insert(*packed);
        Statement(database, "DELETE FROM packed_steps WHERE step = ?").bind(1, step).execute();
        database.execute("RELEASE unpacking");
    } catch (const DatabaseError&) {
        Statement(database, "ROLLBACK TO unpacking").execute();
        Statement(database, "RELEASE unpacking").execute();
        throw;
    }
}

void unpackAllIntoTables(Database& database) {
    if (!database.hasTable(kPackedTable)) return;
    std::vector<std::int64_t> steps;
    Statement from(database, "SELECT step FROM packed_steps");
    while (from.step()) steps.push_back(from.integer(0));
    for (const std::int64_t step : steps) unpackIntoTables(database, step);
}

}  // namespace hw::core

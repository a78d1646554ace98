// SPDX-License-Identifier: MIT
#include "core/session/session.h"

#include <utility>

#include "core/session/database.h"
#include "core/session/guarded.h"
#include "core/session/live_series.h"
#include "core/session/memory_events.h"
#include "core/session/statements.h"

namespace hw::core {
Status Session::begin() {
    return guarded(path_, "writing", [&] { database_->execute("BEGIN"); });
}
Status Session::commit() {
    return guarded(path_, "writing", [&] {
        flush();
        database_->execute("COMMIT");
    });
}

Status Session::insert(const ProcessRow& row) {
    return guarded(path_, "writing a process", [&] {
        Statement statement(*database_,
                            "INSERT INTO processes(pid, command, host, started_ns, framework,"
                            " framework_version, rank) VALUES(?,?,?,?,?,?,?)");
        statement.bind(1, row.pid).bind(2, row.command).bind(3, row.host).bind(4, row.startedNs);
        statement.bind(5, row.framework)
            .bind(6, row.frameworkVersion)
            .bind(7, std::int64_t{row.rank});
        statement.execute();
    });
}

Status Session::setExitStatus(std::int64_t pid, int status) {
    return guarded(path_, "writing how a process ended", [&] {
        Statement(*database_, "UPDATE processes SET exit_status = ? WHERE pid = ?")
            .bind(1, std::int64_t{status})
            .bind(2, pid)
            .execute();
    });
}

Status Session::insert(const LayerRow& row) {
    return guarded(path_, "writing a layer", [&] {
        Statement statement(*database_,
                            "INSERT INTO layers(id, parent, path, type) VALUES(?,?,?,?)");
        statement.bind(1, row.id).bind(2, row.parent).bind(3, row.path).bind(4, row.type).execute();
    });
}

Status Session::insert(const OpRow& row) {
    return guarded(path_, "writing an op", [&] {
        Statements& to = statements();
        to.op.bind(1, row.id).bind(2, row.seq).bind(3, row.name).bind(4, row.overload);
        to.op.bind(5, phaseName(row.phase))
            .bind(6, row.layer)
            .bind(7, row.thread)
            .bind(8, row.beginNs);
        to.op.bind(9, row.duration.count()).bind(10, row.workspace.count()).bind(11, row.liveBytes);
        to.op.bind(12, std::int64_t{row.random});
        row.args.empty() ? to.op.bindNull(13) : to.op.bind(13, row.args);
        to.op.execute();
        for (std::size_t i = 0; i < row.inputs.size(); ++i)
            to.input.bind(1, row.id)
                .bind(2, static_cast<std::int64_t>(i))
                .bind(3, row.inputs[i].tensor)
                .bind(4, std::int64_t{row.inputs[i].version})
                .execute();
        for (std::size_t i = 0; i < row.outputs.size(); ++i)
            to.output.bind(1, row.id)
                .bind(2, static_cast<std::int64_t>(i))
                .bind(3, row.outputs[i].tensor)
                .bind(4, std::int64_t{row.outputs[i].makesStorage})
                .execute();
        for (const OpRow::Write& write : row.writes)
            to.write.bind(1, row.id)
                .bind(2, write.storage)
                .bind(3, std::int64_t{write.versionBefore})
                .execute();
    });
}

Status Session::insert(const StorageRow& row) {
    return guarded(path_, "writing a storage", [&] {
        Statement& to = statements().storage;
        to.bind(1, row.id)
            .bind(2, row.bytes.count())
            .bind(3, row.device)
            .bind(4, categoryName(row.category));
        to.bind(5, row.layer)
            .bind(6, row.creator)
            .bind(7, row.allocSeq)
            .bind(8, row.freeSeq)
            .bind(9, row.address);
        to.execute();
    });
}

Status Session::insert(const TensorRow& row) {
    return guarded(path_, "writing a tensor", [&] {
        Statement& to = statements().tensor;
        to.bind(1, row.id)
            .bind(2, row.storage)
            .bind(3, row.creator)
            .bind(4, row.dtype)
            .bind(5, row.sizes);
        to.bind(6, row.strides).bind(7, row.offset).execute();
    });
}

Status Session::insert(const StepRow& row, const std::vector<std::int64_t>& finalTensors) {
    return guarded(path_, "writing a step", [&] {
        Statement step(*database_,
                       "INSERT INTO steps(id, process, first_seq, end_seq, begin_ns, end_ns,"
                       " allocator_begin_bytes, allocator_peak_bytes, environment)"
                       " VALUES(?,?,?,?,?,?,?,?,?)");
        step.bind(1, row.id)
            .bind(2, row.process)
            .bind(3, row.firstSeq)
            .bind(4, row.endSeq)
            .bind(5, row.beginNs);
        step.bind(6, row.endNs)
            .bind(7, row.allocatorBeginBytes)
            .bind(8, row.allocatorPeakBytes)
            .bind(9, row.environment)
            .execute();
        Statement final(*database_, "INSERT INTO final_tensors VALUES(?,?,?)");
        for (std::size_t i = 0; i < finalTensors.size(); ++i)
            final.bind(1, row.id)
                .bind(2, static_cast<std::int64_t>(i))
                .bind(3, finalTensors[i])
                .execute();
        writeLiveSeries(*database_, row);
    });
}

Status Session::insert(const GapRow& row) {
    return guarded(path_, "writing a gap", [&] {
        Statement statement(
            *database_, "INSERT INTO gaps(step, begin_ns, end_ns, what, why) VALUES(?,?,?,?,?)");
        statement.bind(1, row.step)
            .bind(2, row.beginNs)
            .bind(3, row.endNs)
            .bind(4, row.what)
            .bind(5, row.why);
        statement.execute();
    });
}

Status Session::insertGenerator(std::int64_t step, const Generator& generator) {
    return guarded(path_, "writing a generator state", [&] {
        Statement statement(*database_, "INSERT OR IGNORE INTO generators VALUES(?,?,?,?)");
        statement.bind(1, step)
            .bind(2, generator.id)
            .bind(3, generator.device)
            .bindBlob(4, generator.state);
        statement.execute();
    });
}

Status Session::insertContents(std::int64_t step, std::int64_t storage,
                               std::span<const std::byte> data) {
    return guarded(path_, "writing contents", [&] {
        Statement statement(*database_, "INSERT OR IGNORE INTO contents VALUES(?,?,?)");
        statement.bind(1, step).bind(2, storage).bindBlob(3, data).execute();
    });
}

Status Session::setFreed(std::int64_t storage, std::int64_t freeSeq) {
    return guarded(path_, "writing a release",
                   [&] { statements().freed.bind(1, storage).bind(2, freeSeq).execute(); });
}
Status Session::setStorageBytes(std::int64_t storage, Bytes bytes) {
    return guarded(path_, "writing a size",
                   [&] { statements().resized.bind(1, storage).bind(2, bytes.count()).execute(); });
}
Status Session::setCategory(std::int64_t storage, Category category,
                            std::optional<std::int64_t> layer) {
    return guarded(path_, "writing a category", [&] {
        statements()
            .category.bind(1, storage)
            .bind(2, categoryName(category))
            .bind(3, layer)
            .execute();
    });
}

Status Session::setMeta(const std::string& key, const std::string& value) {
    return guarded(path_, "writing", [&] {
        Statement statement(*database_, "INSERT OR REPLACE INTO meta VALUES(?,?)");
        statement.bind(1, key).bind(2, value).execute();
    });
}

Status Session::setMeasured(std::int64_t op, Nanoseconds time, Bytes workspace) {
    return guarded(path_, "writing measured figures", [&] {
        Statement statement(
            *database_,
            "UPDATE ops SET measured_ns = ?2, measured_workspace_bytes = ?3 WHERE id = ?1");
        statement.bind(1, op).bind(2, time.count()).bind(3, workspace.count()).execute();
    });
}

Status Session::replaceSignatures(const std::vector<SignatureRow>& rows) {
    return guarded(path_, "writing signatures", [&] {
        Statement clear(*database_, "DELETE FROM signatures WHERE op = ?");
        for (const SignatureRow& row : rows)
            if (row.position == 0) clear.bind(1, row.op).execute();
        Statement insert(*database_, "INSERT INTO signatures VALUES(?,?,?,?,?,?)");
        for (const SignatureRow& row : rows) {
            insert.bind(1, row.op).bind(2, std::int64_t{row.position}).bind(3, row.bytes.count());
            row.output ? insert.bind(4, std::int64_t{*row.output}) : insert.bindNull(4);
            insert.bind(5, std::int64_t{row.beginEvent});
            row.endEvent ? insert.bind(6, std::int64_t{*row.endEvent}) : insert.bindNull(6);
            insert.execute();
        }
    });
}

Result<std::int64_t> Session::insert(const PlanRow& row) {
    return guarded(path_, "writing a plan", [&] {
        Statement statement(*database_,
                            "INSERT INTO plans(step, created_ns, planner, budget_bytes, peak_bytes,"
                            " time_ns, overhead, recomputed_ops, lower_bound_ns, solve_seconds,"
                            " document) VALUES(?,?,?,?,?,?,?,?,?,?,?)");
        const Plan& plan = row.plan;
        statement.bind(1, row.step)
            .bind(2, row.createdNs)
            .bind(3, plan.planner)
            .bind(4, plan.budget.count());
        statement.bind(5, plan.predictedPeak.count())
            .bind(6, plan.predictedTime.count())
            .bind(7, plan.overhead);
        statement.bind(8, row.recomputedOps);
        plan.lowerBound ? statement.bind(9, plan.lowerBound->count()) : statement.bindNull(9);
        statement.bind(10, row.solveSeconds).bind(11, writePlan(plan)).execute();
        return database_->lastInsertId();
    });
}

Result<std::int64_t> Session::insert(const RunRow& row) {
    return guarded(path_, "writing a run", [&] {
        Statement statement(*database_,
                            "INSERT INTO runs(plan, step, created_ns, device, predicted_peak_bytes,"
                            " measured_peak_bytes, arena_bytes, time_ns, baseline_time_ns,"
                            " outputs_compared, outputs_different, outputs_nonfinite, details)"
                            " VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?)");
        statement.bind(1, row.plan).bind(2, row.step).bind(3, row.createdNs).bind(4, row.device);
        statement.bind(5, row.predictedPeak.count())
            .bind(6, row.measuredPeak.count())
            .bind(7, row.arenaBytes);
        statement.bind(8, row.time.count())
            .bind(9, row.baselineTime.count())
            .bind(10, row.compared);
        statement.bind(11, row.different).bind(12, row.nonfinite).bind(13, row.details).execute();
        return database_->lastInsertId();
    });
}

Result<std::string> Session::meta(const std::string& key) {
    return guarded(path_, "reading", [&] {
        Statement statement(*database_, "SELECT value FROM meta WHERE key = ?");
        statement.bind(1, key);
        return statement.step() ? statement.text(0) : std::string();
    });
}

Result<SessionCounts> Session::counts() {
    return guarded(path_, "counting", [&] {
        flush();
        auto count = [&](const char* table) {
            Statement statement(*database_, std::string("SELECT count(*) FROM ") + table);
            return statement.step() ? statement.integer(0) : 0;
        };
        return SessionCounts{count("ops"),
                             count("tensors"),
                             count("storages"),
                             count("layers"),
                             count("steps"),
                             count("storages") + count("storages WHERE free_seq IS NOT NULL") +
                                 countMemoryEvents(*database_)};
    });
}

Result<std::vector<ProcessRow>> Session::processes() {
    return guarded(path_, "reading processes", [&] {
        Statement from(*database_,
                       "SELECT id, pid, command, host, framework, framework_version, started_ns,"
                       " rank FROM processes ORDER BY id");
        std::vector<ProcessRow> rows;
        while (from.step())
            rows.push_back({from.integer(0), from.integer(1), from.text(2), from.text(3),
                            from.text(4), from.text(5), from.integer(6),
                            static_cast<int>(from.integer(7))});
        return rows;
    });
}

Result<std::vector<StepRow>> Session::steps() {
    return guarded(path_, "reading steps", [&] {
        Statement from(*database_,
                       "SELECT id, first_seq, end_seq, begin_ns, end_ns, allocator_begin_bytes,"
                       " allocator_peak_bytes, environment, process FROM steps ORDER BY id");
        std::vector<StepRow> rows;
        while (from.step())
            rows.push_back({from.integer(0), from.integer(1), from.integer(2), from.integer(3),
                            from.integer(4), from.optionalInteger(5), from.optionalInteger(6),
                            from.text(7), from.integer(8)});
        return rows;
    });
}

Result<std::int64_t> Session::lastStep() {
    auto all = steps();
    if (!all) return all.error();
    if (all->empty()) {
        if (const auto why = meta("no_step"); why && !why->empty())
            return badInput("session '" + path_ + "' has no ops to plan: " + *why,
                            "record the step with 'highwater record'");
        return badInput("session '" + path_ + "' holds no complete step",
                        "record at least one whole step: forward, backward and Optimizer.step");
    }
    return all->back().id;
}

Result<std::vector<OpRow>> Session::ops(std::int64_t step) {
    return guarded(path_, "reading ops", [&] {
        Statement from(
            *database_,
            "SELECT o.id, seq, name, overload, phase, layer, thread, o.begin_ns, duration_ns,"
            " workspace_bytes, live_bytes, random, args FROM ops o, steps s"
            " WHERE s.id = ? AND seq >= first_seq AND seq < end_seq ORDER BY seq");
        Statement inputs(*database_,
                         "SELECT tensor, version FROM op_inputs WHERE op = ? ORDER BY position");
        Statement outputs(
            *database_,
            "SELECT tensor, makes_storage FROM op_outputs WHERE op = ? ORDER BY position");
        Statement writes(
            *database_,
            "SELECT storage, version_before FROM op_writes WHERE op = ? ORDER BY storage");
        std::vector<OpRow> rows;
        from.bind(1, step);
        while (from.step()) {
            OpRow& row = rows.emplace_back();
            row.id = from.integer(0), row.seq = from.integer(1);
            row.name = from.text(2), row.overload = from.text(3),
            row.phase = phaseFromName(from.text(4));
            row.layer = from.optionalInteger(5), row.thread = from.integer(6),
            row.beginNs = from.integer(7);
            row.duration = Nanoseconds(from.integer(8)), row.workspace = Bytes(from.integer(9));
            row.liveBytes = from.optionalInteger(10), row.random = from.integer(11) != 0,
            row.args = from.text(12);
            for (inputs.bind(1, row.id); inputs.step();)
                row.inputs.push_back(
                    {inputs.integer(0), static_cast<std::int32_t>(inputs.integer(1))});
            for (outputs.bind(1, row.id); outputs.step();)
                row.outputs.push_back({outputs.integer(0), outputs.integer(1) != 0});
            for (writes.bind(1, row.id); writes.step();)
                row.writes.push_back(
                    {writes.integer(0), static_cast<std::int32_t>(writes.integer(1))});
            inputs.reset(), outputs.reset(), writes.reset();
        }
        return rows;
    });
}

Result<std::vector<TensorRow>> Session::tensors() {
    return guarded(path_, "reading tensors", [&] {
        Statement from(
            *database_,
            "SELECT id, storage, creator, dtype, sizes, strides, offset FROM tensors ORDER BY id");
        std::vector<TensorRow> rows;
        while (from.step())
            rows.push_back({from.integer(0), from.integer(1), from.optionalInteger(2), from.text(3),
                            from.text(4), from.text(5), from.integer(6)});
        return rows;
    });
}

Result<std::vector<GapRow>> Session::gaps() {
    return guarded(path_, "reading gaps", [&] {
        Statement from(*database_,
                       "SELECT step, begin_ns, end_ns, what, why FROM gaps ORDER BY id");
        std::vector<GapRow> rows;
        while (from.step())
            rows.push_back({from.optionalInteger(0), from.optionalInteger(1),
                            from.optionalInteger(2), from.text(3), from.text(4)});
        return rows;
    });
}

Result<std::vector<Generator>> Session::generators(std::int64_t step) {
    return guarded(path_, "reading generator states", [&] {
        Statement from(
            *database_,
            "SELECT generator, device, state FROM generators WHERE step = ? ORDER BY generator");
        from.bind(1, step);
        std::vector<Generator> rows;
        while (from.step()) {
            const auto state = from.blob(2);
            rows.push_back({from.integer(0), from.text(1), {state.begin(), state.end()}});
        }
        return rows;
    });
}

Result<std::vector<std::byte>> Session::contents(std::int64_t step, std::int64_t storage) {
    return guarded(path_, "reading contents", [&] {
        Statement from(*database_, "SELECT data FROM contents WHERE step = ? AND storage = ?");
        from.bind(1, step).bind(2, storage);
        if (!from.step()) return std::vector<std::byte>{};
        const auto data = from.blob(0);
        return std::vector<std::byte>(data.begin(), data.end());
    });
}

Result<std::vector<SignatureRow>> Session::signatures(std::int64_t step) {
    return guarded(path_, "reading signatures", [&] {
        Statement from(
            *database_,
            "SELECT g.op, g.position, g.bytes, g.output, g.begin_event, g.end_event"
            " FROM signatures g JOIN ops o ON o.id = g.op, steps s WHERE s.id = ?"
            " AND o.seq >= s.first_seq AND o.seq < s.end_seq ORDER BY o.seq, g.position");
        from.bind(1, step);
        std::vector<SignatureRow> rows;
        while (from.step()) {
            SignatureRow& row = rows.emplace_back();
            row.op = from.integer(0), row.position = static_cast<int>(from.integer(1));
            row.bytes = Bytes(from.integer(2)), row.beginEvent = static_cast<int>(from.integer(4));
            if (!from.isNull(3)) row.output = static_cast<int>(from.integer(3));
            if (!from.isNull(5)) row.endEvent = static_cast<int>(from.integer(5));
        }
        return rows;
    });
}

Result<std::vector<PlanRow>> Session::plans() {
    return guarded(path_, "reading plans", [&] {
        Statement from(*database_,
                       "SELECT id, step, created_ns, recomputed_ops, solve_seconds, document"
                       " FROM plans ORDER BY id");
        std::vector<PlanRow> rows;
        while (from.step()) {
            auto plan = parsePlan(from.text(5));
            if (!plan) continue;  // of a later version: the rest of the session is still good
            rows.push_back({from.integer(0), from.integer(1), from.integer(2), std::move(*plan),
                            from.integer(3), from.real(4)});
        }
        return rows;
    });
}

Result<std::vector<RunRow>> Session::runs() {
    return guarded(path_, "reading runs", [&] {
        Statement from(
            *database_,
            "SELECT id, plan, step, created_ns, device, predicted_peak_bytes,"
            " measured_peak_bytes, arena_bytes, time_ns, baseline_time_ns, outputs_compared,"
            " outputs_different, outputs_nonfinite, details FROM runs ORDER BY id");
        std::vector<RunRow> rows;
        while (from.step())
            rows.push_back({from.integer(0), from.optionalInteger(1), from.integer(2),
                            from.integer(3), from.text(4), Bytes(from.integer(5)),
                            Bytes(from.integer(6)), from.optionalInteger(7),
                            Nanoseconds(from.integer(8)), Nanoseconds(from.integer(9)),
                            from.integer(10), from.integer(11), from.integer(12), from.text(13)});
        return rows;
    });
}

bool Session::hasMeasuredCosts(std::int64_t step) {
    const auto count = guarded(path_, "reading", [&] {
        Statement from(*database_,
                       "SELECT count(*) = count(measured_ns) AND count(*) > 0 FROM ops o, steps s"
                       " WHERE s.id = ? AND seq >= first_seq AND seq < end_seq");
        from.bind(1, step);
        return from.step() ? from.integer(0) : 0;
    });
    return count && *count != 0;
}

}  // namespace hw::core

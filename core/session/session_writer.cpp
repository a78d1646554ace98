// SPDX-License-Identifier: MIT
#include "core/session/session_writer.h"

#include <sqlite3.h>

#include <filesystem>
#include <utility>

#include "core/session/database.h"
#include "core/session/guarded.h"
#include "core/session/live_series.h"
#include "core/session/statements.h"
#include "core/session/step_rows.h"

namespace hw::core {

Status SessionWriter::begin() {
    return guarded(path_, "writing", [&] { database_->execute("BEGIN IMMEDIATE"); });
}
Status SessionWriter::commit() {
    HW_TRY(guarded(path_, "writing", [&] {
        writeGathered();
        database_->execute("COMMIT");
    }));
    return requireThere();
}

Status SessionWriter::requireThere() const {
    int moved = 0;
    sqlite3_file_control(database_->handle(), "main", SQLITE_FCNTL_HAS_MOVED, &moved);
    if (moved == 0) return {};
    return Error{ErrorCode::Internal,
                 "session '" + path_ +
                     "' was removed or replaced while it was written: nothing of it is saved",
                 "leave the file where it is until the command has ended"};
}

Status SessionWriter::insert(const ProcessRow& row) {
    return guarded(path_, "writing a process", [&] {
        Statement statement(*database_,
                            "INSERT INTO processes(pid, command, host, started_ns, framework,"
                            " framework_version, rank, exit_status) VALUES(?,?,?,?,?,?,?,?)");
        statement.bind(1, row.pid).bind(2, row.command).bind(3, row.host).bind(4, row.startedNs);
        statement.bind(5, row.framework)
            .bind(6, row.frameworkVersion)
            .bind(7, std::int64_t{row.rank})
            .bind(8, row.exitStatus ? std::optional<std::int64_t>(*row.exitStatus) : std::nullopt);
        statement.execute();
        if (!row.worldSize && row.run.empty() && !row.clockOffsetNs) return;
        Statement(*database_, "INSERT INTO ranks VALUES(?,?,?,?,?)")
            .bind(1, database_->lastInsertId())
            .bind(2, row.worldSize)
            .bind(3, row.run)
            .bind(4, row.clockOffsetNs)
            .bind(5, row.clockErrorNs)
            .execute();
    });
}

Status SessionWriter::setExitStatus(std::int64_t pid, int status) {
    return guarded(path_, "writing how a process ended", [&] {
        Statement(*database_, "UPDATE processes SET exit_status = ? WHERE pid = ?")
            .bind(1, std::int64_t{status})
            .bind(2, pid)
            .execute();
    });
}

Status SessionWriter::insert(const LayerRow& row) {
    return guarded(path_, "writing a layer", [&] {
        Statement statement(*database_,
                            "INSERT INTO layers(id, parent, path, type) VALUES(?,?,?,?)");
        statement.bind(1, row.id).bind(2, row.parent).bind(3, row.path).bind(4, row.type).execute();
    });
}

Status SessionWriter::insert(const OpRow& row) {
    return guarded(path_, "writing an op", [&] { statements().rows.insert(row); });
}

Status SessionWriter::insert(const StorageRow& row) {
    return guarded(path_, "writing a storage", [&] { statements().rows.insert(row); });
}

Status SessionWriter::insert(const TensorRow& row) {
    return guarded(path_, "writing a tensor", [&] { statements().rows.insert(row); });
}

Status SessionWriter::insert(const StepRow& row, const std::vector<std::int64_t>& finalTensors,
                             const StepContents& packed) {
    return guarded(path_, "writing a step", [&] {
        Statements& to = statements();
        to.step.bind(1, row.id)
            .bind(2, row.process)
            .bind(3, row.firstSeq)
            .bind(4, row.endSeq)
            .bind(5, row.beginNs);
        to.step.bind(6, row.endNs)
            .bind(7, row.allocatorBeginBytes)
            .bind(8, row.allocatorPeakBytes)
            .bind(9, row.environment)
            .execute();
        for (std::size_t i = 0; i < finalTensors.size(); ++i)
            to.final.bind(1, row.id)
                .bind(2, static_cast<std::int64_t>(i))
                .bind(3, finalTensors[i])
                .execute();
        const StepContents none;
        writeLiveSeries(*database_, row, insertPacked(row.id, packed) ? packed : none);
    });
}

/// False where all rows are in tables.
bool SessionWriter::insertPacked(std::int64_t step, const StepContents& rows) {
    if (rows.empty()) return false;
    const auto blob = packStep(rows);
    if (!blob) {
        statements().rows.insert(rows);
        return false;
    }
    database_->kept("INSERT INTO packed_steps VALUES(?,?)")
        .bind(1, step)
        .bindBlob(2, *blob)
        .execute();
    return true;
}

Status SessionWriter::unpackStep(std::int64_t step) {
    return guarded(path_, "unpacking a step", [&] { unpackIntoTables(*database_, step); });
}

Status SessionWriter::insert(const GapRow& row) {
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

Status SessionWriter::insertGenerator(std::int64_t step, const Generator& generator) {
    return guarded(path_, "writing a generator state", [&] {
        Statement statement(*database_, "INSERT OR IGNORE INTO generators VALUES(?,?,?,?)");
        statement.bind(1, step)
            .bind(2, generator.id)
            .bind(3, generator.device)
            .bindBlob(4, generator.state);
        statement.execute();
    });
}

Status SessionWriter::insertContents(std::int64_t step, std::int64_t storage,
                                     std::span<const std::byte> data) {
    return guarded(path_, "writing contents", [&] {
        statements().contents.bind(1, step).bind(2, storage).bindBlob(3, data).execute();
    });
}

Status SessionWriter::setFreed(std::int64_t storage, std::int64_t freeSeq) {
    return guarded(path_, "writing a release",
                   [&] { statements().freed.bind(1, storage).bind(2, freeSeq).execute(); });
}
Status SessionWriter::setStorageBytes(std::int64_t storage, Bytes bytes) {
    return guarded(path_, "writing a size",
                   [&] { statements().resized.bind(1, storage).bind(2, bytes.count()).execute(); });
}
Status SessionWriter::setCategory(std::int64_t storage, Category category,
                                  std::optional<std::int64_t> layer) {
    return guarded(path_, "writing a category", [&] {
        statements()
            .category.bind(1, storage)
            .bind(2, categoryName(category))
            .bind(3, layer)
            .execute();
    });
}

Status SessionWriter::setMeta(const std::string& key, const std::string& value) {
    return guarded(path_, "writing", [&] {
        Statement statement(*database_, "INSERT OR REPLACE INTO meta VALUES(?,?)");
        statement.bind(1, key).bind(2, value).execute();
    });
}

Status SessionWriter::setMeasured(std::int64_t op, Nanoseconds time, Bytes workspace) {
    return guarded(path_, "writing measured figures", [&] {
        Statement statement(
            *database_,
            "UPDATE ops SET measured_ns = ?2, measured_workspace_bytes = ?3 WHERE id = ?1");
        statement.bind(1, op).bind(2, time.count()).bind(3, workspace.count()).execute();
    });
}

Status SessionWriter::replaceSignatures(const std::vector<SignatureRow>& rows) {
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

Result<std::int64_t> SessionWriter::insert(const PlanRow& row) {
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

Result<std::int64_t> SessionWriter::keepPlan(PlanRow row) {
    const auto kept = plans();
    if (!kept) return kept.error();
    const std::string document = writePlan(row.plan);
    for (const PlanRow& each : *kept)
        if (each.step == row.step && writePlan(each.plan) == document) return each.id;
    return insert(row);
}

Result<std::int64_t> SessionWriter::insert(const RunRow& row) {
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

Status writeSession(const std::string& path, const std::function<Status(SessionWriter&)>& fill) {
    std::error_code ignored;
    if (std::filesystem::exists(path, ignored))
        return badInput("'" + path + "' exists already",
                        "choose another name with -o, or move it away");
    const std::string partial = path + ".partial";
    std::filesystem::remove(partial, ignored);
    const auto filled = [&]() -> Status {
        auto session = SessionWriter::create(partial);
        if (!session) return session.error();
        return fill(*session);
    };
    Status done = filled();
    if (done) {
        std::error_code failure;
        std::filesystem::rename(partial, path, failure);
        if (!failure) return done;
        done = badInput("cannot write '" + path + "': " + failure.message(),
                        "check that the folder is writable and has room");
    }
    for (const char* end : {"", "-wal", "-shm", "-journal"})
        std::filesystem::remove(partial + end, ignored);
    return done;
}

}  // namespace hw::core

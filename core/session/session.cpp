// SPDX-License-Identifier: MIT
#include "core/session/session.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "core/base/utf8.h"
#include "core/session/circles.h"
#include "core/session/database.h"
#include "core/session/guarded.h"
#include "core/session/memory_events.h"
#include "core/session/step_rows.h"

namespace hw::core {
namespace {

void addRanks(Database& database, std::map<std::int64_t, ProcessRow>& processes) {
    Statement from(database,
                   "SELECT process, world_size, run, clock_offset_ns, clock_error_ns FROM ranks");
    while (from.step()) {
        const auto at = processes.find(from.integer(0));
        if (at == processes.end()) continue;
        at->second.worldSize = from.optionalInteger(1), at->second.run = from.text(2);
        at->second.clockOffsetNs = from.optionalInteger(3);
        at->second.clockErrorNs = from.optionalInteger(4);
    }
}

/// Of ops that began at the same time on a thread, the one with the higher seq is the later.
void findNextBegins(std::vector<OpSpanRow>& rows) {
    std::vector<OpSpanRow*> inTime;
    for (OpSpanRow& row : rows) inTime.push_back(&row);
    std::sort(inTime.begin(), inTime.end(), [](const OpSpanRow* a, const OpSpanRow* b) {
        return std::tie(a->thread, a->beginNs, a->seq) < std::tie(b->thread, b->beginNs, b->seq);
    });
    for (std::size_t i = 0; i + 1 < inTime.size(); ++i)
        if (inTime[i]->thread == inTime[i + 1]->thread)
            inTime[i]->nextBeginNs = inTime[i + 1]->beginNs;
}

}  // namespace

Result<std::string> Session::meta(const std::string& key) const {
    return guarded(path_, "reading", [&] {
        Statement statement(*database_, "SELECT value FROM meta WHERE key = ?");
        statement.bind(1, key);
        return statement.step() ? statement.text(0) : std::string();
    });
}

Result<SessionCounts> Session::counts() const {
    return guarded(path_, "counting", [&] {
        writeGathered();
        auto count = [&](const char* table) {
            Statement statement(*database_, std::string("SELECT count(*) FROM ") + table);
            return statement.step() ? statement.integer(0) : 0;
        };
        const PackedCounts packed = countPacked(*database_);  // these storages have all gone
        return SessionCounts{count("ops") + packed.ops,
                             count("tensors") + packed.tensors,
                             count("storages") + packed.storages,
                             count("layers"),
                             count("steps"),
                             count("storages") + count("storages WHERE free_seq IS NOT NULL") +
                                 2 * packed.storages + countMemoryEvents(*database_)};
    });
}

Result<std::vector<ProcessRow>> Session::processes() const {
    return guarded(path_, "reading processes", [&] {
        Statement from(*database_,
                       "SELECT id, pid, command, host, framework, framework_version, started_ns,"
                       " rank, exit_status FROM processes ORDER BY id");
        std::map<std::int64_t, ProcessRow> rows;
        while (from.step()) {
            ProcessRow& row = rows[from.integer(0)];
            row.id = from.integer(0), row.pid = from.integer(1);
            row.command = from.text(2), row.host = shownName(from.text(3));
            row.framework = shownName(from.text(4));
            row.frameworkVersion = shownName(from.text(5));
            row.startedNs = from.integer(6), row.rank = static_cast<int>(from.integer(7));
            if (!from.isNull(8)) row.exitStatus = static_cast<int>(from.integer(8));
        }
        if (database_->hasTable("ranks")) addRanks(*database_, rows);
        std::vector<ProcessRow> inOrder;
        for (auto& [id, row] : rows) inOrder.push_back(std::move(row));
        return inOrder;
    });
}

Result<std::vector<LayerRow>> Session::layers() const {
    return guarded(path_, "reading layers", [&] {
        Statement from(*database_, "SELECT id, parent, path, type FROM layers ORDER BY id");
        std::vector<LayerRow> rows;
        while (from.step())
            rows.push_back({from.integer(0), from.optionalInteger(1), from.text(2), from.text(3)});
        requireNoCircle(
            rows, "its layers", [](const LayerRow& row) { return row.id; },
            [](const LayerRow& row) { return row.parent; });
        return rows;
    });
}

Result<std::vector<StepRow>> Session::steps() const {
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

Result<std::int64_t> Session::lastStep() const {
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

Result<std::vector<OpRow>> Session::ops(std::int64_t step) const {
    return guarded(path_, "reading ops",
                   [&] { return readOps(*database_, step, OpDetail::Everything); });
}

Result<std::vector<OpSpanRow>> Session::opSpans(std::int64_t step) const {
    return guarded(path_, "reading ops", [&] {
        std::map<std::int64_t, std::string> layers;
        Statement paths(*database_, "SELECT id, path FROM layers");
        while (paths.step()) layers.emplace(paths.integer(0), paths.text(1));
        std::vector<OpSpanRow> rows;
        for (OpRow& op : readOps(*database_, step, OpDetail::Spans)) {
            OpSpanRow& row = rows.emplace_back();
            row.id = op.id, row.seq = op.seq;
            row.name = std::move(op.name), row.overload = std::move(op.overload);
            row.phase = op.phase;
            if (const auto at = op.layer ? layers.find(*op.layer) : layers.end();
                at != layers.end())
                row.layer = at->second;
            row.thread = op.thread;
            row.beginNs = op.beginNs, row.durationNs = op.duration.count();
            row.workspace = op.workspace;
        }
        findNextBegins(rows);
        return rows;
    });
}

Result<std::vector<OpTimeRow>> Session::opTimes() const {
    return guarded(path_, "reading times", [&] {
        Statement from(*database_, "SELECT id, begin_ns, duration_ns, device_ns FROM ops");
        std::vector<OpTimeRow> rows;
        while (from.step())
            rows.push_back(
                {from.integer(0), from.integer(1), from.integer(2), from.optionalInteger(3)});
        visitPackedSteps(*database_, OpDetail::Spans, [&](std::int64_t, const StepContents& step) {
            for (const OpRow& op : step.ops)
                rows.push_back({op.id, op.beginNs, op.duration.count(), std::nullopt});
        });
        std::sort(rows.begin(), rows.end(),
                  [](const OpTimeRow& a, const OpTimeRow& b) { return a.op < b.op; });
        return rows;
    });
}

Result<std::vector<StorageRow>> Session::storages(const StepRow& step) const {
    return guarded(path_, "reading storages", [&] { return readStorages(*database_, step); });
}

Result<std::vector<std::string>> Session::storageDevices() const {
    return guarded(path_, "reading devices", [&] {
        Statement from(*database_, "SELECT DISTINCT device FROM storages");
        std::set<std::string> names;
        while (from.step()) names.insert(from.text(0));
        visitPackedSteps(*database_, OpDetail::Edges, [&](std::int64_t, const StepContents& step) {
            for (const StorageRow& row : step.storages) names.insert(row.device);
        });
        return std::vector<std::string>(names.begin(), names.end());
    });
}

Result<std::vector<DeviceRow>> Session::devices() const {
    return guarded(path_, "reading devices", [&] {
        Statement from(*database_,
                       "SELECT id, kind, ordinal, name, capacity_bytes FROM devices ORDER BY id");
        std::vector<DeviceRow> rows;
        while (from.step())
            rows.push_back({from.integer(0), from.text(1), from.integer(2), shownName(from.text(3)),
                            from.optionalInteger(4)});
        return rows;
    });
}

Result<DeviceWorkCounts> Session::deviceWorkCounts() const {
    return guarded(path_, "counting kernels", [&] {
        Statement from(*database_,
                       "SELECT (SELECT count(*) FROM kernels), (SELECT count(*) FROM copies),"
                       " (SELECT count(*) FROM kernels WHERE op IS NULL)");
        from.step();
        return DeviceWorkCounts{from.integer(0), from.integer(1), from.integer(2)};
    });
}

Result<std::vector<TensorRow>> Session::tensors() const {
    return guarded(path_, "reading tensors", [&] {
        Statement from(
            *database_,
            "SELECT id, storage, creator, dtype, sizes, strides, offset FROM tensors ORDER BY id");
        std::vector<TensorRow> rows;
        while (from.step())
            rows.push_back({from.integer(0), from.integer(1), from.optionalInteger(2), from.text(3),
                            from.text(4), from.text(5), from.integer(6)});
        visitPackedSteps(*database_, OpDetail::Edges, [&](std::int64_t, const StepContents& step) {
            rows.insert(rows.end(), step.tensors.begin(), step.tensors.end());
        });
        std::sort(rows.begin(), rows.end(),
                  [](const TensorRow& a, const TensorRow& b) { return a.id < b.id; });
        return rows;
    });
}

Result<std::vector<GapRow>> Session::gaps() const {
    return guarded(path_, "reading gaps", [&] {
        Statement from(*database_,
                       "SELECT step, begin_ns, end_ns, what, why FROM gaps ORDER BY id");
        std::vector<GapRow> rows;
        while (from.step())
            rows.push_back({from.optionalInteger(0), from.optionalInteger(1),
                            from.optionalInteger(2), shownName(from.text(3)),
                            shownName(from.text(4))});
        return rows;
    });
}

Result<std::vector<Generator>> Session::generators(std::int64_t step) const {
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

Result<std::vector<std::byte>> Session::contents(std::int64_t step, std::int64_t storage) const {
    return guarded(path_, "reading contents", [&] {
        Statement from(*database_, "SELECT data FROM contents WHERE step = ? AND storage = ?");
        from.bind(1, step).bind(2, storage);
        if (!from.step()) return std::vector<std::byte>{};
        const auto data = from.blob(0);
        return std::vector<std::byte>(data.begin(), data.end());
    });
}

Result<std::vector<SignatureRow>> Session::signatures(std::int64_t step) const {
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

Result<std::vector<PlanRow>> Session::plans() const {
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

Result<std::vector<RunRow>> Session::runs() const {
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

bool Session::hasMeasuredCosts(std::int64_t step) const {
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

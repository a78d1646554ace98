// SPDX-License-Identifier: MIT
#include "core/session/append_session.h"

#include <stdexcept>
#include <string>
#include <vector>

#include "core/session/access.h"
#include "core/session/arguments.h"
#include "core/session/guarded.h"
#include "core/session/session_error.h"
#include "core/session/step_rows.h"

namespace hw::core {
namespace {

/// What becomes of a number; NULL and what is no number stay as they are.
enum class Becomes { Same, Left, Moved, Process, Step, Layer, Stack, Device, Plan, Time };

// A table, and what its ids become: those that are left out are given anew.
struct Table {
    const char* name;
    Becomes id = Becomes::Left;
};

// What refers to a row comes after it. Processes, layers, call stacks and steps, with what is
// packed of them, are written one by one; curves are made of the steps.
constexpr Table kTables[] = {{"devices", Becomes::Device},
                             {"ops", Becomes::Moved},
                             {"op_inputs"},
                             {"op_outputs"},
                             {"op_writes"},
                             {"op_stacks"},
                             {"storages", Becomes::Moved},
                             {"storage_stacks"},
                             {"tensors", Becomes::Moved},
                             {"final_tensors"},
                             {"generators"},
                             {"contents"},
                             {"signatures"},
                             {"implementations"},
                             {"menus"},
                             {"implementation_signatures"},
                             {"kernels"},
                             {"copies"},
                             {"ranges"},
                             {"gaps"},
                             {"plans", Becomes::Plan},
                             {"runs"}};

Becomes becomes(const Table& table, const std::string& column) {
    using enum Becomes;
    static const std::map<std::string, Becomes> kColumns{
        {"alloc_seq", Moved}, {"begin_ns", Time},  {"creator", Moved},   {"device", Device},
        {"end_ns", Time},     {"free_seq", Moved}, {"layer", Layer},     {"of", Moved},
        {"op", Moved},        {"plan", Plan},      {"process", Process}, {"seq", Moved},
        {"stack", Stack},     {"step", Step},      {"storage", Moved},   {"tensor", Moved}};
    if (column == "id") return table.id;
    const auto at = kColumns.find(column);
    return at == kColumns.end() ? Same : at->second;
}

class Appender {
public:
    Appender(const Session& from, const Placement& placement, CommonRows& common, SessionWriter& to)
        : session_(from),
          from_(databaseOf(from)),
          to_(databaseOf(to)),
          placement_(placement),
          common_(common),
          out_(to),
          moved_(placement.processes * kIdsOfProcess),
          devices_(highest("devices")),
          plans_(highest("plans")) {}

    Status append() {
        HW_TRY(processes());
        HW_TRY(layers());
        HW_TRY(stacks());
        HW_TRY(guarded(out_.path(), "joining", [&] {
            for (const Table& table : kTables)
                if (from_.hasTable(table.name)) copy(table);
            moveArguments();
        }));
        HW_TRY(steps());
        return memoryEvents();
    }

private:
    std::int64_t highest(const char* table) {
        Statement from(to_, std::string("SELECT coalesce(max(id), 0) FROM ") + table);
        return from.step() ? from.integer(0) : 0;
    }

    Status processes() {
        auto rows = session_.processes();
        if (!rows) return rows.error();
        for (ProcessRow& row : *rows) {
            row.clockOffsetNs = placement_.clockOffsetNs;
            row.clockErrorNs = placement_.clockErrorNs;
            HW_TRY(out_.insert(row));
        }
        return {};
    }

    Status layers() {
        auto rows = session_.layers();
        if (!rows) return rows.error();
        for (LayerRow& row : *rows) {
            const std::int64_t id = row.id;
            if (row.parent) row.parent = layers_.at(*row.parent);
            const auto made = common_.layer(out_, std::move(row));
            if (!made) return made.error();
            layers_[id] = *made;
        }
        return {};
    }

    Status stacks() {
        if (!from_.hasTable("stacks")) return {};
        std::map<std::int64_t, std::int64_t> frames;
        Statement lines(from_, "SELECT id, file, function, line, framework FROM source_frames");
        while (lines.step()) {
            const auto made = common_.sourceFrame(
                out_, {0, lines.text(1), lines.text(2), lines.integer(3), lines.integer(4) != 0});
            if (!made) return made.error();
            frames[lines.integer(0)] = *made;
        }
        Statement nodes(from_, "SELECT id, parent, frame FROM stacks ORDER BY id");
        while (nodes.step()) {
            StackRow row{0, nodes.optionalInteger(1), frames.at(nodes.integer(2))};
            if (row.parent) row.parent = stacks_.at(*row.parent);
            const auto made = common_.stack(out_, row);
            if (!made) return made.error();
            stacks_[nodes.integer(0)] = *made;
        }
        return {};
    }

    /// After ops and storages, of which their curves are made.
    Status steps() {
        auto rows = session_.steps();
        if (!rows) return rows.error();
        for (StepRow& row : *rows) {
            auto packed = packedStep(from_, row.id, OpDetail::Everything);
            row.id = placement_.steps.at(row.id);
            row.process += placement_.processes;
            row.firstSeq += moved_, row.endSeq += moved_;
            row.beginNs += placement_.clockOffsetNs, row.endNs += placement_.clockOffsetNs;
            HW_TRY(out_.insert(row, {}, packed ? moved(std::move(*packed)) : StepContents{}));
        }
        return {};
    }

    /// They stay packed.
    StepContents moved(StepContents rows) const {
        const auto layer = [&](auto& row) { row.layer = number(row.layer, Becomes::Layer); };
        const auto stack = [&](auto& row) { row.stack = number(row.stack, Becomes::Stack); };
        for (OpRow& op : rows.ops) {
            op.id += moved_, op.seq += moved_;
            op.beginNs += placement_.clockOffsetNs;
            layer(op), stack(op);
            for (OpRow::Input& input : op.inputs) input.tensor += moved_;
            for (OpRow::Output& output : op.outputs) output.tensor += moved_;
            for (OpRow::Write& write : op.writes) write.storage += moved_;
            if (moved_ != 0) op.args = withTensorsMoved(op.args, moved_);
        }
        for (StorageRow& storage : rows.storages) {
            storage.id += moved_, storage.allocSeq += moved_;
            storage.creator = number(storage.creator, Becomes::Moved);
            storage.freeSeq = number(storage.freeSeq, Becomes::Moved);
            layer(storage), stack(storage);
        }
        for (TensorRow& tensor : rows.tensors) {
            tensor.id += moved_, tensor.storage += moved_;
            tensor.creator = number(tensor.creator, Becomes::Moved);
        }
        return rows;
    }

    Status memoryEvents() {
        std::int64_t events = 0;
        HW_TRY(session_.visitMemoryEvents([&](const MemoryEventRow&) { ++events; }));
        if (events == 0) return {};
        GapRow gap;
        gap.what = "memory events of devices";
        gap.why = std::to_string(events) + " of them stay in " + session_.path();
        return out_.insert(gap);
    }

    void copy(const Table& table) {
        std::vector<Becomes> columns;
        std::string names, marks;
        Statement known(from_, "SELECT name FROM pragma_table_info(?)");
        for (known.bind(1, table.name); known.step();) {
            const Becomes what = becomes(table, known.text(0));
            if (what == Becomes::Left) continue;
            names += (names.empty() ? "\"" : ",\"") + known.text(0) + '"';
            marks += marks.empty() ? "?" : ",?";
            columns.push_back(what);
        }
        Statement from(from_, "SELECT " + names + " FROM " + table.name);
        Statement to(to_, std::string("INSERT INTO ") + table.name + "(" + names + ") VALUES(" +
                              marks + ")");
        while (from.step()) {
            for (std::size_t i = 0; i < columns.size(); ++i) {
                const int column = static_cast<int>(i);
                if (columns[i] == Becomes::Same || !from.isInteger(column))
                    to.bindFrom(column + 1, from, column);
                else
                    to.bind(column + 1, number(from.integer(column), columns[i]));
            }
            to.execute();
        }
    }

    /// Ids of tensors stand in arguments, too.
    void moveArguments() {
        if (moved_ == 0) return;
        Statement from(to_, "SELECT id, args FROM ops WHERE id >= ? AND args IS NOT NULL");
        Statement to(to_, "UPDATE ops SET args = ?2 WHERE id = ?1");
        for (from.bind(1, moved_); from.step();)
            to.bind(1, from.integer(0)).bind(2, withTensorsMoved(from.text(1), moved_)).execute();
    }

    std::optional<std::int64_t> number(const std::optional<std::int64_t>& value,
                                       Becomes becomes) const {
        return value ? number(*value, becomes) : std::nullopt;
    }
    std::optional<std::int64_t> number(std::int64_t value, Becomes becomes) const {
        switch (becomes) {
            case Becomes::Moved:
                return value + moved_;
            case Becomes::Process:
                return value + placement_.processes;
            case Becomes::Step:
                return found(placement_.steps, value);
            case Becomes::Layer:
                return found(layers_, value);
            case Becomes::Stack:
                return found(stacks_, value);
            case Becomes::Device:
                return value + devices_;
            case Becomes::Plan:
                return value + plans_;
            case Becomes::Time:
                return value + placement_.clockOffsetNs;
            default:
                return value;
        }
    }
    static std::optional<std::int64_t> found(const std::map<std::int64_t, std::int64_t>& ids,
                                             std::int64_t id) {
        const auto at = ids.find(id);
        return at == ids.end() ? std::nullopt : std::optional(at->second);
    }

    const Session& session_;
    Database &from_, &to_;
    const Placement& placement_;
    CommonRows& common_;
    SessionWriter& out_;
    std::int64_t moved_, devices_, plans_;
    std::map<std::int64_t, std::int64_t> layers_, stacks_;
};

}  // namespace

Status appendSession(const Session& from, const Placement& placement, CommonRows& common,
                     SessionWriter& to) {
    try {
        return Appender(from, placement, common, to).append();
    } catch (const std::out_of_range&) {
        return badInput("'" + from.path() + "' refers to a layer, stack or step that it lacks",
                        "the file may be damaged; copy it again from where it was recorded");
    } catch (const DatabaseError& error) {
        return sessionError(to.path(), "joining", error);
    }
}

}  // namespace hw::core

// SPDX-License-Identifier: MIT
#include "core/session/load_menu.h"

#include <unordered_map>

#include "core/session/access.h"
#include "core/session/session_error.h"
#include "core/session/signatures.h"

namespace hw::core {
namespace {

constexpr const char* kRepeatHint = "the file may be damaged; measure or record again";

// As in schema.sql, for sessions of before.
constexpr const char* kMenuTables = R"(
CREATE TABLE IF NOT EXISTS menus (step INTEGER PRIMARY KEY, document TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS implementation_signatures (
    op INTEGER NOT NULL, name TEXT NOT NULL, of INTEGER NOT NULL, position INTEGER NOT NULL,
    bytes INTEGER NOT NULL, output INTEGER, begin_event INTEGER NOT NULL, end_event INTEGER,
    PRIMARY KEY (op, name, of, position)) WITHOUT ROWID;
)";

Error unreadable(const Session& session, const DatabaseError& error) {
    return sessionError(session.path(), "reading implementations", error);
}

Status loadAlgorithms(const Session& session, const TrainingGraph& graph, Menu& menu) {
    std::unordered_map<std::int64_t, OpIndex> indices;
    for (OpIndex i = 0; i < static_cast<OpIndex>(graph.ops.size()); ++i)
        indices[graph.ops[i].sessionId] = i;
    Statement from(databaseOf(session),
                   "SELECT op, name, duration_ns, workspace_bytes FROM implementations"
                   " ORDER BY op, name");
    while (from.step()) {
        const auto op = indices.find(from.integer(0));
        if (op == indices.end()) continue;  // of another step
        Implementation one;
        one.op = op->second;
        one.name = from.text(1);
        one.time = Nanoseconds(from.integer(2));
        one.workspace = Bytes(from.integer(3));
        if (*one.time < Nanoseconds(0) || *one.workspace < Bytes(0))
            return badInput("session '" + session.path() + "': implementation '" + one.name +
                                "' of op " + std::to_string(one.op) + " has negative figures",
                            kRepeatHint);
        menu.implementations.push_back(std::move(one));
    }
    return {};
}

Status loadOthers(const Session& session, const TrainingGraph& graph, Menu& menu) {
    if (!databaseOf(session).hasTable("menus")) return {};
    Statement from(databaseOf(session), "SELECT document FROM menus WHERE step = ?");
    from.bind(1, graph.sessionStep);
    if (!from.step()) return {};
    auto others = parseMenu(from.text(0), graph);
    if (!others)
        return badInput("session '" + session.path() + "': " + others.error().what, kRepeatHint);
    for (Implementation& one : others->implementations) {
        if (menu.find(one.op, one.name) != nullptr)
            return badInput("session '" + session.path() + "' has '" + one.name + "' of op " +
                                std::to_string(one.op) + " twice",
                            kRepeatHint);
        menu.implementations.push_back(std::move(one));
    }
    return {};
}

// Position -1 stands for an op that allocates nothing, too.
void storeSignature(SessionWriter& session, const TrainingGraph& graph,
                    const ImplementationSignature& under) {
    Statement into(databaseOf(session),
                   "INSERT INTO implementation_signatures VALUES(?, ?, ?, ?, ?, ?, ?, ?)");
    const auto row = [&](int position, const Allocation& allocation) {
        into.bind(1, graph.ops[under.op].sessionId).bind(2, std::string_view(under.name));
        into.bind(3, graph.ops[under.of].sessionId).bind(4, static_cast<std::int64_t>(position));
        const auto wide = [](const std::optional<int>& value) {
            return value ? std::optional<std::int64_t>(*value) : std::nullopt;
        };
        into.bind(5, allocation.bytes.count()).bind(6, wide(allocation.output));
        into.bind(7, static_cast<std::int64_t>(allocation.beginEvent));
        into.bind(8, wide(allocation.endEvent));
        into.execute();
    };
    row(-1, {});
    int position = 0;
    for (const Allocation& allocation : under.signature.allocations) row(position++, allocation);
}

// None when the session has none of that op under that implementation.
Result<std::optional<OpSignature>> signatureUnder(const Session& session,
                                                  const TrainingGraph& graph,
                                                  const Implementation& one, OpIndex of) {
    Statement from(databaseOf(session),
                   "SELECT position, bytes, output, begin_event, end_event FROM"
                   " implementation_signatures WHERE op = ? AND name = ? AND of = ?"
                   " ORDER BY position");
    from.bind(1, graph.ops[one.op].sessionId).bind(2, std::string_view(one.name));
    from.bind(3, graph.ops[of].sessionId);
    std::optional<OpSignature> found;
    const auto outputs = static_cast<std::int64_t>(graph.ops[of].outputs.size());
    while (from.step()) {
        if (!found) found.emplace();
        if (from.integer(0) < 0) continue;
        const std::int64_t bytes = from.integer(1), begin = from.integer(3);
        const auto output = from.optionalInteger(2), end = from.optionalInteger(4);
        // One output more than captured: the form that an intermediate-activated one makes.
        if (bytes < 0 || begin < 0 || begin > INT32_MAX || end.value_or(begin) < begin ||
            end.value_or(begin) > INT32_MAX - 1 || (output && (*output < 0 || *output > outputs)))
            return badInput("session '" + session.path() + "' has a broken signature of op " +
                                std::to_string(of) + " (" + graph.ops[of].name + ") under '" +
                                one.name + "'",
                            kRepeatHint);
        Allocation allocation;
        allocation.bytes = Bytes(bytes);
        if (output) allocation.output = static_cast<int>(*output);
        allocation.beginEvent = static_cast<int>(begin);
        if (end) allocation.endEvent = static_cast<int>(*end);
        found->events = std::max(found->events, static_cast<int>(end.value_or(begin)) + 1);
        found->allocations.push_back(allocation);
    }
    return found;
}

}  // namespace

Result<Menu> loadMenu(const Session& session, const TrainingGraph& graph) {
    Menu menu;
    try {
        HW_TRY(loadAlgorithms(session, graph, menu));
        HW_TRY(loadOthers(session, graph, menu));
    } catch (const DatabaseError& error) {
        return unreadable(session, error);
    }
    return menu;
}

Status storeMenu(SessionWriter& session, const TrainingGraph& graph, const Menu& menu,
                 const std::vector<ImplementationSignature>& signatures) {
    try {
        databaseOf(session).execute(kMenuTables);
        for (const char* table : {"implementations", "implementation_signatures"}) {
            Statement remove(databaseOf(session),
                             "DELETE FROM " + std::string(table) + " WHERE op = ?");
            for (const Op& op : graph.ops) remove.bind(1, op.sessionId).execute();
        }
        Statement into(databaseOf(session), "INSERT INTO implementations VALUES(?, ?, ?, ?)");
        Menu others;
        for (const Implementation& one : menu.implementations) {
            if (one.kind != ImplementationKind::Algorithm) {
                others.implementations.push_back(one);
                continue;
            }
            into.bind(1, graph.ops[one.op].sessionId).bind(2, std::string_view(one.name));
            into.bind(3, one.time->count()).bind(4, one.workspace->count());
            into.execute();
        }
        Statement document(databaseOf(session), "INSERT OR REPLACE INTO menus VALUES(?, ?)");
        document.bind(1, graph.sessionStep).bind(2, std::string_view(writeMenu(others)));
        document.execute();
        for (const ImplementationSignature& under : signatures)
            storeSignature(session, graph, under);
        return {};
    } catch (const DatabaseError& error) {
        return unreadable(session, error);
    }
}

Result<Signatures> loadSignaturesUnder(const Session& session, const TrainingGraph& graph,
                                       const Menu& chosen) {
    auto signatures = loadSignatures(session, graph);
    if (!signatures || signatures->empty() || chosen.empty()) return signatures;
    try {
        if (!databaseOf(session).hasTable("implementation_signatures")) return Signatures{};
        for (const Implementation& one : chosen.implementations)
            for (const OpIndex of : {one.op, one.backward}) {
                if (of == kNone) continue;
                auto found = signatureUnder(session, graph, one, of);
                if (!found) return found.error();
                if (!*found) return Signatures{};
                (*signatures)[of] = std::move(**found);
            }
    } catch (const DatabaseError& error) {
        return unreadable(session, error);
    }
    return signatures;
}

}  // namespace hw::core

// SPDX-License-Identifier: MIT
#include "core/session/trace_staging.h"

#include "core/session/access.h"
#include "core/session/guarded.h"

namespace hw::core {
namespace {

constexpr const char* kStagedColumns =
    "SELECT kind, begin_ns, end_ns, thread, name, layer, s.external, sequence, forward_thread,"
    " s.correlation, stream, device, address, bytes, allocated, reserved, event_index, stack";
constexpr const char* kHostOrder = " ORDER BY begin_ns, end_ns DESC, coalesce(event_index, id), id";

StagedEvent readEvent(const Statement& from) {
    StagedEvent event;
    event.kind = static_cast<StagedKind>(from.integer(0));
    event.begin = from.integer(1), event.end = from.integer(2);
    event.thread = from.integer(3), event.name = from.integer(4);
    event.layer = from.optionalInteger(5), event.external = from.optionalInteger(6);
    event.sequence = from.optionalInteger(7), event.forwardThread = from.optionalInteger(8);
    event.correlation = from.optionalInteger(9), event.stream = from.optionalInteger(10);
    event.device = from.optionalInteger(11), event.address = from.optionalInteger(12);
    event.bytes = from.optionalInteger(13), event.allocated = from.optionalInteger(14);
    event.reserved = from.optionalInteger(15), event.eventIndex = from.optionalInteger(16);
    event.stack = from.optionalInteger(17);
    return event;
}

}  // namespace

struct TraceStaging::Statements {
    explicit Statements(Database& database)
        : add(database,
              "INSERT INTO temp.staged(kind, begin_ns, end_ns, thread, name, layer, external,"
              " sequence, forward_thread, correlation, stream, device, address, bytes, allocated,"
              " reserved, event_index, stack) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"),
          launch(database, "INSERT OR IGNORE INTO temp.launches VALUES(?,?)"),
          external(database, "INSERT OR IGNORE INTO temp.externals VALUES(?,?)") {}
    Statement add, launch, external;
};

TraceStaging::TraceStaging(SessionWriter& session, std::unique_ptr<Statements> statements)
    : session_(session), statements_(std::move(statements)) {}
TraceStaging::TraceStaging(TraceStaging&&) noexcept = default;

Result<TraceStaging> TraceStaging::create(SessionWriter& session) {
    return guarded(session.path(), "sorting events", [&] {
        Database& database = databaseOf(session);
        database.execute(
            "CREATE TEMP TABLE staged(id INTEGER PRIMARY KEY, kind INTEGER, begin_ns INTEGER,"
            " end_ns INTEGER, thread INTEGER, name INTEGER, layer INTEGER, external INTEGER,"
            " sequence INTEGER, forward_thread INTEGER, correlation INTEGER, stream INTEGER,"
            " device INTEGER, address INTEGER, bytes INTEGER, allocated INTEGER, reserved INTEGER,"
            " event_index INTEGER, stack INTEGER);"
            "CREATE TEMP TABLE launches(correlation INTEGER PRIMARY KEY, op INTEGER);"
            "CREATE TEMP TABLE externals(external INTEGER PRIMARY KEY, op INTEGER);");
        return TraceStaging(session, std::make_unique<Statements>(database));
    });
}

TraceStaging::~TraceStaging() {
    if (!statements_) return;
    statements_.reset();
    try {
        databaseOf(session_).execute(
            "DROP TABLE temp.staged; DROP TABLE temp.launches; DROP TABLE temp.externals;");
    } catch (const DatabaseError&) {
        // They go with the connection.
    }
}

std::int64_t TraceStaging::intern(const std::string& name) {
    const auto [at, isNew] = ids_.try_emplace(name, static_cast<std::int64_t>(names_.size()));
    if (isNew) names_.push_back(name);
    return at->second;
}

Status TraceStaging::add(const StagedEvent& event) {
    return guarded(session_.path(), "sorting events", [&] {
        Statement& to = statements_->add;
        to.bind(1, static_cast<std::int64_t>(event.kind)).bind(2, event.begin).bind(3, event.end);
        to.bind(4, event.thread).bind(5, event.name).bind(6, event.layer).bind(7, event.external);
        to.bind(8, event.sequence).bind(9, event.forwardThread).bind(10, event.correlation);
        to.bind(11, event.stream).bind(12, event.device).bind(13, event.address);
        to.bind(14, event.bytes).bind(15, event.allocated).bind(16, event.reserved);
        to.bind(17, event.eventIndex).bind(18, event.stack).execute();
    });
}

Status TraceStaging::launch(std::int64_t correlation, std::int64_t op) {
    return guarded(session_.path(), "sorting events",
                   [&] { statements_->launch.bind(1, correlation).bind(2, op).execute(); });
}
Status TraceStaging::external(std::int64_t external, std::int64_t op) {
    return guarded(session_.path(), "sorting events",
                   [&] { statements_->external.bind(1, external).bind(2, op).execute(); });
}

Status TraceStaging::visitHost(const std::function<void(const StagedEvent&)>& visit) const {
    return guarded(session_.path(), "sorting events", [&] {
        Statement from(
            databaseOf(session_),
            std::string(kStagedColumns) + " FROM temp.staged s WHERE kind <= 4" + kHostOrder);
        while (from.step()) visit(readEvent(from));
    });
}

Status TraceStaging::visitUntotalled(std::int64_t device,
                                     const std::function<void(std::int64_t)>& visit) const {
    return guarded(session_.path(), "sorting events", [&] {
        Statement from(databaseOf(session_),
                       std::string("SELECT bytes FROM temp.staged WHERE kind = ?1 AND device = ?2"
                                   " AND allocated IS NULL") +
                           kHostOrder);
        from.bind(1, static_cast<std::int64_t>(StagedKind::Memory)).bind(2, device);
        while (from.step()) visit(from.integer(0));
    });
}

Status TraceStaging::visitDevice(
    const std::function<void(const StagedEvent&, std::optional<std::int64_t> op)>& visit) const {
    return guarded(session_.path(), "sorting events", [&] {
        Statement from(databaseOf(session_),
                       std::string(kStagedColumns) +
                           ", l.op, e.op FROM temp.staged s"
                           " LEFT JOIN temp.launches l ON l.correlation = s.correlation"
                           " LEFT JOIN temp.externals e ON e.external = s.external"
                           " WHERE kind >= 5 ORDER BY begin_ns, id");
        while (from.step()) {
            const auto launched = from.optionalInteger(17);
            visit(readEvent(from), launched ? launched : from.optionalInteger(18));
        }
    });
}

}  // namespace hw::core

// SPDX-License-Identifier: MIT
#include "core/import/kineto_staging.h"

namespace hw::core {

struct KinetoStaging::Statements {
    explicit Statements(Database& database)
        : add(database,
              "INSERT INTO temp.staged(kind, begin_ns, end_ns, thread, name, layer, external,"
              " sequence, forward_thread, correlation, stream, device, address, bytes, allocated,"
              " reserved, event_index) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"),
          launch(database, "INSERT OR IGNORE INTO temp.launches VALUES(?,?)"),
          external(database, "INSERT OR IGNORE INTO temp.externals VALUES(?,?)") {}
    Statement add, launch, external;
};

KinetoStaging::KinetoStaging(Session& session) : session_(session) {
    session.database().execute(
        "CREATE TEMP TABLE staged(id INTEGER PRIMARY KEY, kind INTEGER, begin_ns INTEGER,"
        " end_ns INTEGER, thread INTEGER, name INTEGER, layer INTEGER, external INTEGER,"
        " sequence INTEGER, forward_thread INTEGER, correlation INTEGER, stream INTEGER,"
        " device INTEGER, address INTEGER, bytes INTEGER, allocated INTEGER, reserved INTEGER,"
        " event_index INTEGER);"
        "CREATE TEMP TABLE launches(correlation INTEGER PRIMARY KEY, op INTEGER);"
        "CREATE TEMP TABLE externals(external INTEGER PRIMARY KEY, op INTEGER);");
    statements_ = std::make_unique<Statements>(session.database());
}

KinetoStaging::~KinetoStaging() {
    statements_.reset();
    try {
        session_.database().execute(
            "DROP TABLE temp.staged; DROP TABLE temp.launches; DROP TABLE temp.externals;");
    } catch (const DatabaseError&) {
        // They go with the connection.
    }
}

std::int64_t KinetoStaging::intern(const std::string& name) {
    const auto [at, isNew] = ids_.try_emplace(name, static_cast<std::int64_t>(names_.size()));
    if (isNew) names_.push_back(name);
    return at->second;
}

void KinetoStaging::add(const KinetoRow& row) {
    Statement& to = statements_->add;
    to.bind(1, static_cast<std::int64_t>(row.kind)).bind(2, row.begin).bind(3, row.end);
    to.bind(4, row.thread).bind(5, row.name).bind(6, row.layer).bind(7, row.external);
    to.bind(8, row.sequence).bind(9, row.forwardThread).bind(10, row.correlation);
    to.bind(11, row.stream).bind(12, row.device).bind(13, row.address).bind(14, row.bytes);
    to.bind(15, row.allocated).bind(16, row.reserved).bind(17, row.eventIndex).execute();
}

void KinetoStaging::launch(std::int64_t correlation, std::int64_t op) {
    statements_->launch.bind(1, correlation).bind(2, op).execute();
}
void KinetoStaging::external(std::int64_t external, std::int64_t op) {
    statements_->external.bind(1, external).bind(2, op).execute();
}

std::string KinetoStaging::columns() {
    return "SELECT kind, begin_ns, end_ns, thread, name, layer, s.external, sequence,"
           " forward_thread, s.correlation, stream, device, address, bytes, allocated, reserved,"
           " event_index";
}

KinetoRow KinetoStaging::read(Statement& from) {
    KinetoRow row;
    row.kind = static_cast<KinetoKind>(from.integer(0));
    row.begin = from.integer(1), row.end = from.integer(2);
    row.thread = from.integer(3), row.name = from.integer(4);
    row.layer = from.optionalInteger(5), row.external = from.optionalInteger(6);
    row.sequence = from.optionalInteger(7), row.forwardThread = from.optionalInteger(8);
    row.correlation = from.optionalInteger(9), row.stream = from.optionalInteger(10);
    row.device = from.optionalInteger(11), row.address = from.optionalInteger(12);
    row.bytes = from.optionalInteger(13), row.allocated = from.optionalInteger(14);
    row.reserved = from.optionalInteger(15), row.eventIndex = from.optionalInteger(16);
    return row;
}

}  // namespace hw::core

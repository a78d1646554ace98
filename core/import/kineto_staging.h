// SPDX-License-Identifier: MIT
// Where the events of a Kineto trace wait to be sorted by time. Private to core/import.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/import/kineto_events.h"
#include "core/import/trace_writer.h"

namespace hw::core {

enum class KinetoKind : std::uint8_t { Op, Annotation, Module, Runtime, Memory, Kernel, Copy };

/// A staged event: fields of KinetoEvent under their kind's meaning.
struct KinetoRow {
    KinetoKind kind = KinetoKind::Op;
    std::int64_t begin = 0, end = 0;    // nanoseconds
    std::int64_t thread = 0, name = 0;  // name: of KinetoStaging::name()
    std::optional<std::int64_t> layer;  // that the event itself names
    std::optional<std::int64_t> external, sequence, forwardThread, correlation, stream, device;
    std::optional<std::int64_t> address, bytes, allocated, reserved, eventIndex;
};

/// A temporary table of the session's database: SQLite keeps it in a file of its own that has no
/// name, so memory does not grow with the trace.
class KinetoStaging {
public:
    explicit KinetoStaging(Session& session);
    ~KinetoStaging();
    KinetoStaging(const KinetoStaging&) = delete;
    KinetoStaging& operator=(const KinetoStaging&) = delete;

    std::int64_t intern(const std::string& name);
    const std::string& name(std::int64_t id) const { return names_[static_cast<std::size_t>(id)]; }
    void add(const KinetoRow& row);

    /// Everything on the host's threads by time; what encloses comes before what is inside.
    template <class Visit>
    void visitHost(Visit visit) {
        Statement from(session_.database(),
                       columns() + " FROM temp.staged s WHERE kind <= 4" + kHostOrder);
        while (from.step()) visit(read(from));
    }
    /// Sizes of a device's [memory] events without totals, in the order of visitHost().
    template <class Visit>
    void visitUntotalled(std::int64_t device, Visit visit) {
        Statement from(session_.database(),
                       std::string("SELECT bytes FROM temp.staged WHERE kind = ?1 AND device = ?2"
                                   " AND allocated IS NULL") +
                           kHostOrder);
        from.bind(1, static_cast<std::int64_t>(KinetoKind::Memory)).bind(2, device);
        while (from.step()) visit(from.integer(0));
    }
    /// Kernels and copies by time, with the op that launched them.
    template <class Visit>
    void visitDevice(Visit visit) {
        Statement from(session_.database(),
                       columns() +
                           ", l.op, e.op FROM temp.staged s LEFT JOIN temp.launches l ON "
                           "l.correlation = s.correlation"
                           " LEFT JOIN temp.externals e ON e.external = s.external"
                           " WHERE kind >= 5 ORDER BY begin_ns, id");
        while (from.step()) {
            auto op = from.optionalInteger(17);
            if (!op) op = from.optionalInteger(18);
            visit(read(from), op);
        }
    }
    void launch(std::int64_t correlation, std::int64_t op);
    void external(std::int64_t external, std::int64_t op);

private:
    static constexpr const char* kHostOrder =
        " ORDER BY begin_ns, end_ns DESC, coalesce(event_index, id), id";
    static std::string columns();
    static KinetoRow read(Statement& from);

    Session& session_;
    struct Statements;
    std::unique_ptr<Statements> statements_;
    std::unordered_map<std::string, std::int64_t> ids_;
    std::vector<std::string> names_;
};

}  // namespace hw::core

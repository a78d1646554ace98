// SPDX-License-Identifier: MIT
// Where the events of an imported trace wait to be sorted by time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/result.h"
#include "core/session/session_writer.h"

namespace hw::core {

enum class StagedKind : std::uint8_t { Op, Annotation, Module, Runtime, Memory, Kernel, Copy };

/// An event that waits; which fields it has is its kind's.
struct StagedEvent {
    StagedKind kind = StagedKind::Op;
    std::int64_t begin = 0, end = 0;           // nanoseconds
    std::int64_t thread = 0, name = 0;         // name: of TraceStaging::name()
    std::optional<std::int64_t> layer, stack;  // that the event itself names
    std::optional<std::int64_t> external, sequence, forwardThread, correlation, stream, device;
    std::optional<std::int64_t> address, bytes, allocated, reserved, eventIndex;
};

/// Temporary tables of the session's database: SQLite keeps them in a file of their own that has no
/// name, so memory does not grow with the trace. Lives no longer than the session. Errors: BadInput
/// when the disk is full. What a visitor throws passes.
class TraceStaging {
public:
    static Result<TraceStaging> create(SessionWriter& session);
    TraceStaging(TraceStaging&&) noexcept;
    TraceStaging& operator=(TraceStaging&&) = delete;
    ~TraceStaging();

    std::int64_t intern(const std::string& name);
    const std::string& name(std::int64_t id) const { return names_[static_cast<std::size_t>(id)]; }
    Status add(const StagedEvent& event);
    /// The op that launched what has this correlation, or that ran under this external id; the
    /// first one that is told counts.
    Status launch(std::int64_t correlation, std::int64_t op);
    Status external(std::int64_t external, std::int64_t op);

    /// Everything on the host's threads by time; what encloses comes before what is inside.
    Status visitHost(const std::function<void(const StagedEvent&)>& visit) const;
    /// Sizes of a device's memory events without totals, in the order of visitHost().
    Status visitUntotalled(std::int64_t device,
                           const std::function<void(std::int64_t)>& visit) const;
    /// Kernels and copies by time, with the op that launched them.
    Status visitDevice(
        const std::function<void(const StagedEvent&, std::optional<std::int64_t> op)>& visit) const;

private:
    struct Statements;
    TraceStaging(SessionWriter& session, std::unique_ptr<Statements> statements);

    SessionWriter& session_;
    std::unique_ptr<Statements> statements_;
    std::unordered_map<std::string, std::int64_t> ids_;
    std::vector<std::string> names_;
};

}  // namespace hw::core

// SPDX-License-Identifier: MIT
// What CUPTI told of one process, on its way into the tables that importers fill.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/session/session_writer.h"
#include "profiler/wire/records.h"

namespace hw::profiler {

/// CUPTI's clock beside the one of the ops, from moments at which both were read: a straight line
/// between two of them, the nearest one's offset beyond.
class DeviceClock {
public:
    void add(const wire::ClockRecord& moment);
    bool known() const { return !moments_.empty(); }
    std::int64_t toHost(std::int64_t deviceNs) const;
    /// {"offset_ns", "drift_ppb", "uncertainty_ns", "moments"} as JSON.
    std::string describe() const;

private:
    std::vector<wire::ClockRecord> moments_;  // by deviceNs
};

/// Kernels and copies find their op by the id that was pushed while it ran, or else by the thread
/// and the time of the call that launched them.
class DeviceRecords {
public:
    struct OpSpan {
        std::int64_t begin = 0, end = 0, thread = 0, id = 0;
    };

    bool any() const { return clock_.known(); }
    void take(const wire::DeviceRecord& record) { devices_.push_back(record); }
    void take(const wire::ClockRecord& record) { clock_.add(record); }
    void take(const wire::FootprintRecord& record) { footprints_.push_back(record); }
    void take(wire::NameRecord record) { names_[record.id] = std::move(record.text); }
    void take(const wire::ActivitiesRecord& record);

    /// An op that is in the session now.
    void op(const OpSpan& span) { ops_.push_back(span); }
    /// After a step has been written. `last`: nothing more will come. Errors: those of the session.
    core::Status write(core::SessionWriter& session, std::int64_t stepBegin, std::int64_t stepEnd,
                       bool last);

private:
    struct Launch {  // of a correlation
        std::int64_t external = 0, begin = 0, thread = 0;
        int age = 0;  // writes since
    };
    struct Pending {
        wire::Activity activity;
        int age = 0;
    };

    std::int64_t begin(const wire::Activity& activity) const;
    std::int64_t end(const wire::Activity& activity) const;
    const OpSpan* opBefore(std::int64_t hostNs) const;
    std::optional<std::int64_t> opOf(std::uint32_t correlation) const;
    core::Status writeWork(core::SessionWriter& session, const wire::Activity& activity,
                           std::optional<std::int64_t> op);
    core::Status writeAllWork(core::SessionWriter& session, bool last);
    bool toldAlready(const wire::Activity& activity);
    core::Status writeMemory(core::SessionWriter& session, const wire::Activity& activity);
    core::Status writeMemoryEvents(core::SessionWriter& session, bool last);
    core::Status writeRanges(core::SessionWriter& session);
    core::Status writeFootprints(core::SessionWriter& session);
    void forgetOld();

    DeviceClock clock_;
    std::vector<wire::DeviceRecord> devices_;
    std::vector<wire::FootprintRecord> footprints_;
    std::unordered_map<std::int64_t, std::string> names_;
    std::unordered_map<std::uint32_t, Launch> launches_;
    std::vector<Pending> work_;                    // kernels, copies, memsets
    std::vector<wire::Activity> memory_;           // allocations and pools
    std::vector<wire::Activity> ranges_;           // synchronizations and CUPTI's own work
    std::map<std::int64_t, wire::Activity> open_;  // ranges that began
    std::vector<std::pair<wire::Activity, std::int64_t>> closed_;  // with their ends
    std::unordered_map<std::int64_t, std::int64_t> created_;       // handle to bytes
    std::unordered_set<std::int64_t> segments_, released_;         // addresses, of those told of
    std::vector<OpSpan> ops_;
    std::optional<std::int64_t> firstBegin_;
    std::int64_t lastEnd_ = 0;
    // What has come in buffers reaches to here, ns of the device's clock; and did a step before.
    std::int64_t newest_ = 0, toldBefore_ = 0;
    bool changed_ = false;
};

}  // namespace hw::profiler

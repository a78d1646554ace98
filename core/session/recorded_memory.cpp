// SPDX-License-Identifier: MIT
#include "core/session/recorded_memory.h"
#include "core/base/utf8.h"

#include <algorithm>
#include <limits>
#include <map>
#include <unordered_map>

#include "core/session/access.h"
#include "core/session/memory_events.h"
#include "core/session/session_error.h"
#include "core/session/step_rows.h"

namespace hw::core {
namespace {

constexpr std::int64_t kHost = -1;
constexpr std::int64_t kEventNs = 1'000'000;  // of an event without a time

void nameDevice(Database& database, RecordedDevice& device) {
    Statement from(database, "SELECT kind, name FROM devices WHERE ordinal = ? ORDER BY id");
    if (!from.bind(1, device.ordinal).step()) return;
    device.label = from.text(0);
    if (device.ordinal >= 0) device.label += ":" + std::to_string(device.ordinal);
    device.name = from.text(1);
}

std::vector<RecordedDevice> devicesOf(Database& database) {
    std::map<std::int64_t, RecordedDevice> seen;
    readMemoryEvents(database, [&](const MemoryEventRow& event) {
        RecordedDevice& device = seen[event.device];
        device.timed = device.timed || event.timeNs != 0;
        if (!event.allocated) return;
        ++device.events;
        device.end = Bytes(*event.allocated);
        device.peak = std::max(device.peak, device.end);
        device.reserved = std::max(device.reserved, Bytes(event.reserved.value_or(0)));
    });
    std::vector<RecordedDevice> devices;
    for (auto& [ordinal, device] : seen) {
        device.ordinal = ordinal;
        nameDevice(database, device);
        devices.push_back(std::move(device));
    }
    return devices;
}

// Of a trace without memory: the device that has the most kernels and copies.
std::optional<RecordedDevice> busiestDevice(Database& database) {
    Statement from(database,
                   "SELECT d.ordinal FROM (SELECT device FROM kernels UNION ALL"
                   " SELECT device FROM copies) w JOIN devices d ON d.id = w.device"
                   " WHERE d.kind <> 'cpu' GROUP BY d.ordinal ORDER BY count(*) DESC, d.ordinal");
    if (!from.step()) return std::nullopt;
    RecordedDevice device;
    device.ordinal = from.integer(0);
    device.timed = true;
    nameDevice(database, device);
    return device;
}

class Loader {
public:
    explicit Loader(const Session& session) : database_(databaseOf(session)) {}

    /// `device`: one of `devices`; null: there is none.
    RecordedMemory load(RecordedDetail detail, std::vector<RecordedDevice> devices,
                        const RecordedDevice* device) {
        if (device != nullptr) {
            device_ = found_.ordinal = device->ordinal;
            found_.device = device->label, found_.deviceName = device->name;
            found_.timed = device->timed;
        }
        found_.devices = std::move(devices);
        loadLayers();
        loadOps();
        found_.originNs = origin_;
        findEnd();
        loadEvents(detail == RecordedDetail::Peak);
        if (!found_.moments.empty()) loadStorages(detail == RecordedDetail::Peak);
        return std::move(found_);
    }

private:
    void loadLayers() {
        Statement from(database_, "SELECT id, path, type, parent FROM layers ORDER BY id");
        while (from.step()) {
            layerOf_[from.integer(0)] = static_cast<LayerIndex>(found_.graph.layers.size());
            found_.graph.layers.push_back(
                {shownName(from.text(1)), shownName(from.text(2)), layer(from.optionalInteger(3))});
        }
    }
    LayerIndex layer(const std::optional<std::int64_t>& id) const {
        const auto at = id ? layerOf_.find(*id) : layerOf_.end();
        return at == layerOf_.end() ? kNone : at->second;
    }

    void loadOps() {
        origin_ = firstTime();
        std::unordered_map<std::int64_t, std::int64_t> busyUntil;  // by thread
        visitOps(database_, [&](const OpRow& row) {
            const auto index = static_cast<OpIndex>(found_.graph.ops.size());
            opOf_[row.id] = index;
            Op& op = found_.graph.ops.emplace_back();
            op.sessionId = row.id, op.name = row.name;
            op.phase = row.phase, op.layer = layer(row.layer);
            op.time = row.duration;
            const std::int64_t begin = since(row.beginNs);
            std::int64_t end = begin;
            if (__builtin_add_overflow(begin, std::max<std::int64_t>(0, row.duration.count()),
                                       &end))
                end = begin;
            const auto [until, isNew] = busyUntil.try_emplace(row.thread, -1);
            if (begin < until->second) return;
            until->second = end;
            found_.spans.push_back({index, Nanoseconds(begin), Nanoseconds(end)});
        });
        std::stable_sort(found_.spans.begin(), found_.spans.end(),
                         [](const auto& a, const auto& b) { return a.begin < b.begin; });
    }
    std::int64_t firstTime() {
        Statement from(database_,
                       "SELECT min(t) FROM (SELECT min(begin_ns) AS t FROM ops UNION ALL"
                       " SELECT min(begin_ns) FROM memory_chunks WHERE begin_ns > 0)");
        std::optional<std::int64_t> first;
        if (from.step()) first = from.optionalInteger(0);
        visitPackedSteps(database_, OpDetail::Spans, [&](std::int64_t, const StepContents& step) {
            for (const OpRow& row : step.ops)
                first = std::min(first.value_or(row.beginNs), row.beginNs);
        });
        if (first) return *first;
        Statement work(database_,
                       "SELECT min(t) FROM (SELECT min(begin_ns) AS t FROM kernels UNION ALL"
                       " SELECT min(begin_ns) FROM copies)");
        return work.step() ? work.optionalInteger(0).value_or(0) : 0;
    }
    void findEnd() {
        for (const RecordedMemory::OpSpan& span : found_.spans)
            found_.end = std::max(found_.end, span.end);
        Statement work(database_,
                       "SELECT max(t) FROM (SELECT max(end_ns) AS t FROM kernels UNION ALL"
                       " SELECT max(end_ns) FROM copies)");
        if (work.step()) found_.end = std::max(found_.end, Nanoseconds(since(work.integer(0))));
    }
    std::int64_t since(std::int64_t time) const {
        std::int64_t result = 0;
        return __builtin_sub_overflow(time, origin_, &result) ? 0
                                                              : std::max<std::int64_t>(0, result);
    }

    void loadEvents(bool highestOnly) {
        std::int64_t last = 0, seen = 0, index = -1, number = -1;
        Bytes highest(std::numeric_limits<std::int64_t>::min());
        readMemoryEvents(database_, [&](const MemoryEventRow& event) {
            ++number;
            const std::int64_t place = event.seq.value_or(seen++);
            if (event.device != device_ || !event.allocated) return;
            ++index;
            found_.reserved = std::max(found_.reserved, Bytes(event.reserved.value_or(0)));
            last = std::max(last, found_.timed ? since(event.timeNs) : index * kEventNs);
            const auto known = event.op ? opOf_.find(*event.op) : opOf_.end();
            const OpIndex op = known == opOf_.end() ? kNone : known->second;
            const bool higher = Bytes(*event.allocated) > highest;
            if (higher) highest = Bytes(*event.allocated);
            if (higher) found_.peakEvent = static_cast<std::int32_t>(index);
            if (highestOnly) {
                seqs_.push_back(place);
                ops_.push_back(op);
                const std::int64_t at = !found_.timed ? number
                                        : index == 0
                                            ? event.timeNs
                                            : std::max(event.timeNs, found_.events.back().place);
                found_.events.push_back({at, Bytes(*event.allocated)});
                if (!higher) return;
                found_.moments.clear();
                found_.seqs.clear();
            }
            found_.moments.push_back({Nanoseconds(last), Bytes(*event.allocated), op});
            found_.seqs.push_back(place);
        });
    }
    void loadStorages(bool highestOnly) {
        visitStorages(database_, [&](const StorageRow& row) {
            if (row.device != found_.device) return;
            ++found_.storages;
            if (highestOnly) keepHeld(row);
            const std::int32_t first = momentAt(row.allocSeq);
            const std::int32_t end =
                momentAt(row.freeSeq.value_or(std::numeric_limits<std::int64_t>::max()));
            if (highestOnly && first >= end) return;
            const auto index = static_cast<StorageIndex>(found_.graph.storages.size());
            Storage& storage = found_.graph.storages.emplace_back();
            storage.sessionId = row.id, storage.bytes = row.bytes;
            storage.category = row.category, storage.layer = layer(row.layer);
            if (first < end) found_.lifetimes.push_back({index, first, end - 1});
        });
    }
    void keepHeld(const StorageRow& row) {
        RecordedMemory::Held held{row.id, row.bytes, layer(row.layer), kNone, 0, 0, row.category};
        held.first = placeAmong(seqs_, row.allocSeq);
        held.end =
            placeAmong(seqs_, row.freeSeq.value_or(std::numeric_limits<std::int64_t>::max()));
        if (held.first >= held.end) return;
        held.op = ops_[static_cast<std::size_t>(held.first)];
        found_.held.push_back(held);
    }
    std::int32_t momentAt(std::int64_t seq) const { return placeAmong(found_.seqs, seq); }
    static std::int32_t placeAmong(const std::vector<std::int64_t>& seqs, std::int64_t seq) {
        // Of one device's events alone they follow each other without a hole.
        const std::int64_t guess = seqs.empty() ? -1 : seq - seqs.front();
        if (guess >= 0 && guess < std::ssize(seqs) && seqs[static_cast<std::size_t>(guess)] == seq)
            return static_cast<std::int32_t>(guess);
        return static_cast<std::int32_t>(std::lower_bound(seqs.begin(), seqs.end(), seq) -
                                         seqs.begin());
    }

    Database& database_;
    RecordedMemory found_;
    std::vector<std::int64_t> seqs_;  // RecordedDetail::Peak: of all events of the device
    std::vector<OpIndex> ops_;        // in which those happened
    std::int64_t device_ = kHost;     // ordinal
    std::int64_t origin_ = 0;
    std::unordered_map<std::int64_t, LayerIndex> layerOf_;
    std::unordered_map<std::int64_t, OpIndex> opOf_;
};

}  // namespace

Result<std::optional<Bytes>> deviceCapacity(const Session& session) {
    try {
        Statement from(databaseOf(session), "SELECT max(capacity_bytes) FROM devices");
        std::optional<Bytes> capacity;
        if (from.step() && from.optionalInteger(0).value_or(0) > 0)
            capacity = Bytes(from.integer(0));
        return capacity;
    } catch (const DatabaseError& error) {
        return sessionError(session.path(), "reading", error);
    }
}

Result<std::vector<std::int64_t>> opBegins(const Session& session, const TrainingGraph& graph) {
    try {
        std::unordered_map<std::int64_t, std::size_t> opOf;
        for (std::size_t i = 0; i < graph.ops.size(); ++i) opOf[graph.ops[i].sessionId] = i;
        std::vector<std::int64_t> begins(graph.ops.size());
        const auto take = [&](const OpRow& row) {
            if (const auto op = opOf.find(row.id); op != opOf.end())
                begins[op->second] = std::max<std::int64_t>(0, row.beginNs);
        };
        Database& database = databaseOf(session);
        if (graph.sessionStep == kNone)
            visitOps(database, take);
        else
            for (const OpRow& row : readOps(database, graph.sessionStep, OpDetail::Spans))
                take(row);
        return begins;
    } catch (const DatabaseError& error) {
        return sessionError(session.path(), "reading", error);
    }
}

Result<std::vector<RecordedDevice>> recordedDevices(const Session& session) {
    try {
        return devicesOf(databaseOf(session));
    } catch (const DatabaseError& error) {
        return badInput("session '" + session.path() + "': " + error.message,
                        "the file may be damaged; record or import it again");
    }
}

Result<const RecordedDevice*> chosenDevice(const std::vector<RecordedDevice>& devices,
                                           const std::string& label) {
    const RecordedDevice* chosen = nullptr;
    std::string known;
    for (const RecordedDevice& device : devices) {
        if (!label.empty() && device.label == label) return &device;
        known += (known.empty() ? "" : ", ") + device.label;
        if (chosen == nullptr || chosen->ordinal == kHost || device.peak > chosen->peak)
            chosen = &device;
    }
    if (label.empty()) return chosen;
    return Error{ErrorCode::Usage, "there is no memory of a device '" + label + "'",
                 known.empty() ? "none was recorded" : "devices with memory: " + known};
}

Nanoseconds RecordedMemory::since(std::int64_t clockNs) const {
    std::int64_t result = 0;  // a damaged file has times that are none
    return Nanoseconds(__builtin_sub_overflow(clockNs, originNs, &result) ? 0 : result);
}

std::string titleOf(const RecordedDevice& device) {
    return device.name.empty() ? device.label : device.label + " (" + device.name + ")";
}

Result<RecordedMemory> loadRecordedMemory(const Session& session, RecordedDetail detail,
                                          const std::string& label,
                                          const std::vector<RecordedDevice>* known) {
    auto devices = known != nullptr ? Result(*known) : recordedDevices(session);
    if (!devices) return devices.error();
    const auto chosen = chosenDevice(*devices, label);
    if (!chosen) return chosen.error();
    try {
        // A copy: the list moves into what is returned.
        const std::optional<RecordedDevice> device =
            *chosen ? std::optional(**chosen) : busiestDevice(databaseOf(session));
        RecordedMemory found =
            Loader(session).load(detail, std::move(*devices), device ? &*device : nullptr);
        if (detail == RecordedDetail::Everything && found.moments.empty() && found.spans.empty() &&
            found.end == Nanoseconds(0))
            return badInput("session '" + session.path() + "' holds no step and no memory event",
                            "record or import one that does");
        return found;
    } catch (const DatabaseError& error) {
        return sessionError(session.path(), "reading", error);
    }
}

}  // namespace hw::core

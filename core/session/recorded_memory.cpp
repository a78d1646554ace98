// SPDX-License-Identifier: MIT
#include "core/session/recorded_memory.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "core/session/database.h"

namespace hw::core {
namespace {

constexpr std::int64_t kEventNs = 1'000'000;  // of an event without a time

class Loader {
public:
    explicit Loader(Session& session) : database_(session.database()) {}

    RecordedMemory load() {
        loadLayers();
        loadOps();
        chooseDevice();
        loadEvents();
        if (!found_.moments.empty()) loadStorages();
        return std::move(found_);
    }

private:
    void loadLayers() {
        Statement from(database_, "SELECT id, path, type, parent FROM layers ORDER BY id");
        while (from.step()) {
            layerOf_[from.integer(0)] = static_cast<LayerIndex>(found_.graph.layers.size());
            found_.graph.layers.push_back({from.text(1), from.text(2), layer(from, 3)});
        }
    }
    LayerIndex layer(const Statement& from, int column) const {
        const auto id = from.optionalInteger(column);
        const auto at = id ? layerOf_.find(*id) : layerOf_.end();
        return at == layerOf_.end() ? kNone : at->second;
    }

    void loadOps() {
        Statement origin(database_,
                         "SELECT min(t) FROM (SELECT min(begin_ns) AS t FROM ops UNION ALL"
                         " SELECT min(time_ns) FROM memory_events)");
        if (origin.step()) origin_ = origin.integer(0);
        Statement from(database_,
                       "SELECT id, name, phase, layer, thread, begin_ns, duration_ns FROM ops"
                       " ORDER BY seq");
        std::unordered_map<std::int64_t, std::int64_t> busyUntil;  // by thread
        while (from.step()) {
            const auto index = static_cast<OpIndex>(found_.graph.ops.size());
            opOf_[from.integer(0)] = index;
            Op& op = found_.graph.ops.emplace_back();
            op.sessionId = from.integer(0), op.name = from.text(1);
            op.phase = phaseFromName(from.text(2)), op.layer = layer(from, 3);
            op.time = Nanoseconds(from.integer(6));
            const std::int64_t begin = since(from.integer(5));
            std::int64_t end = begin;
            if (__builtin_add_overflow(begin, std::max<std::int64_t>(0, from.integer(6)), &end))
                end = begin;
            const auto [until, isNew] = busyUntil.try_emplace(from.integer(4), -1);
            if (begin < until->second) continue;
            until->second = end;
            found_.spans.push_back({index, Nanoseconds(begin), Nanoseconds(end)});
        }
        std::stable_sort(found_.spans.begin(), found_.spans.end(),
                         [](const auto& a, const auto& b) { return a.begin < b.begin; });
    }
    std::int64_t since(std::int64_t time) const {
        std::int64_t result = 0;
        return __builtin_sub_overflow(time, origin_, &result) ? 0
                                                              : std::max<std::int64_t>(0, result);
    }

    void chooseDevice() {
        Statement from(database_,
                       "SELECT e.device, d.kind, d.ordinal, count(e.time_ns) = count(*)"
                       " FROM memory_events e LEFT JOIN devices d ON d.id = e.device"
                       " GROUP BY e.device ORDER BY coalesce(d.kind IN ('cpu', 'host'), 0),"
                       " max(e.allocated_bytes) DESC, e.device LIMIT 1");
        if (!from.step()) return;
        device_ = from.optionalInteger(0);
        found_.device = from.text(1);
        if (from.integer(2) >= 0 && !found_.device.empty())
            found_.device += ":" + std::to_string(from.integer(2));
        Statement timed(database_,
                        "SELECT count(*) FROM memory_events WHERE device IS ? AND time_ns IS NULL"
                        " AND kind NOT IN ('initial', 'block')");
        timed.bind(1, device_).step();
        Statement times(database_, "SELECT count(time_ns) FROM memory_events WHERE device IS ?");
        times.bind(1, device_).step();
        found_.timed = timed.integer(0) == 0 && times.integer(0) > 0;
    }

    void loadEvents() {
        Statement from(database_,
                       "SELECT id, time_ns, allocated_bytes, op FROM memory_events"
                       " WHERE device IS ? AND allocated_bytes IS NOT NULL ORDER BY id");
        from.bind(1, device_);
        std::int64_t last = 0;
        while (from.step()) {
            const auto index = static_cast<std::int64_t>(found_.moments.size());
            const std::int64_t time =
                found_.timed ? from.isNull(1) ? last : since(from.integer(1)) : index * kEventNs;
            last = std::max(last, time);
            const auto op = from.optionalInteger(3);
            const auto known = op ? opOf_.find(*op) : opOf_.end();
            found_.moments.push_back({Nanoseconds(last), Bytes(from.integer(2)),
                                      known == opOf_.end() ? kNone : known->second});
            seqs_.push_back(from.integer(0));
        }
    }

    void loadStorages() {
        Statement from(database_,
                       "SELECT id, bytes, category, layer, alloc_seq, free_seq FROM storages"
                       " WHERE device = ? ORDER BY alloc_seq, id");
        from.bind(1, std::string_view(found_.device));
        while (from.step()) {
            const auto index = static_cast<StorageIndex>(found_.graph.storages.size());
            Storage& storage = found_.graph.storages.emplace_back();
            storage.sessionId = from.integer(0), storage.bytes = Bytes(from.integer(1));
            storage.category = categoryFromName(from.text(2)), storage.layer = layer(from, 3);
            const std::int32_t first = momentAt(from.integer(4));
            const std::int32_t end = momentAt(
                from.optionalInteger(5).value_or(std::numeric_limits<std::int64_t>::max()));
            if (first < end) found_.residences.push_back({index, first, end - 1});
        }
    }
    std::int32_t momentAt(std::int64_t seq) const {
        return static_cast<std::int32_t>(std::lower_bound(seqs_.begin(), seqs_.end(), seq) -
                                         seqs_.begin());
    }

    Database& database_;
    RecordedMemory found_;
    std::optional<std::int64_t> device_;
    std::int64_t origin_ = 0;
    std::unordered_map<std::int64_t, LayerIndex> layerOf_;
    std::unordered_map<std::int64_t, OpIndex> opOf_;
    std::vector<std::int64_t> seqs_;  // of the moments
};

}  // namespace

Result<RecordedMemory> loadRecordedMemory(Session& session) {
    try {
        RecordedMemory found = Loader(session).load();
        if (found.moments.empty() && found.spans.empty())
            return badInput("session '" + session.path() + "' holds no step and no memory event",
                            "record or import one that does");
        return found;
    } catch (const DatabaseError& error) {
        return badInput("session '" + session.path() + "': " + error.message,
                        "the file may be damaged; record or import it again");
    }
}

}  // namespace hw::core

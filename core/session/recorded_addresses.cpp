// SPDX-License-Identifier: MIT
#include "core/session/recorded_addresses.h"

#include <algorithm>
#include <optional>

#include "core/session/access.h"
#include "core/session/guarded.h"
#include "core/session/memory_events.h"
#include "core/session/step_rows.h"

namespace hw::core {
namespace {

/// The events of a device that RecordedMemory has as moments.
struct DeviceEvents {
    std::vector<std::int64_t> seqs, timesNs;

    DeviceEvents(Database& database, std::int64_t device) {
        std::int64_t seen = 0;
        readMemoryEvents(database, [&](const MemoryEventRow& event) {
            const std::int64_t seq = event.seq.value_or(seen++);
            if (event.device != device || !event.allocated) return;
            seqs.push_back(seq);
            timesNs.push_back(timesNs.empty() ? event.timeNs
                                              : std::max(event.timeNs, timesNs.back()));
        });
    }
    std::size_t from(std::int64_t seq) const {
        return static_cast<std::size_t>(std::lower_bound(seqs.begin(), seqs.end(), seq) -
                                        seqs.begin());
    }
};

// A storage came with one event of its device; those of other devices came with none of these.
std::vector<RecordedBlock> storageBlocks(Database& database, const DeviceEvents& events) {
    std::vector<RecordedBlock> blocks;
    visitStorages(database, [&](const StorageRow& row) {
        const std::size_t first = events.from(row.allocSeq), all = events.seqs.size();
        if (!row.address || row.bytes <= Bytes(0) || first == all ||
            events.seqs[first] != row.allocSeq)
            return;
        const std::size_t end = row.freeSeq ? events.from(*row.freeSeq) : all;
        if (end <= first) return;
        blocks.push_back({static_cast<std::int32_t>(first), static_cast<std::int32_t>(end),
                          events.timesNs[first], events.timesNs[std::min(end, all - 1)],
                          *row.address, row.bytes, row.id, row.category});
    });
    return blocks;
}

class BlockFinder {
public:
    explicit BlockFinder(std::int64_t device) : device_(device) {}

    void take(const MemoryEventRow& event) {
        if (event.device != device_ || !event.allocated) return;
        const std::int32_t now = moment_++;
        if (now == 0) firstNs_ = event.timeNs;
        lastNs_ = std::max(lastNs_, event.timeNs);
        if (!event.address) return;
        const bool given = event.kind == "alloc" && event.bytes > Bytes(0);
        const bool back = event.kind == "free" || event.kind == "free_completed" ||
                          (event.kind == "alloc" && event.bytes < Bytes(0));
        if (event.kind == "free_requested") return request(event, now);
        if (!given && !back) return;
        Held& at = held_[*event.address];
        if (!at.seen && back) begin(at, event, taken(event), 0, firstNs_);
        if (at.block) end(at, now, event.timeNs);
        at.seen = true;
        if (given) begin(at, event, event.bytes.count(), now, event.timeNs);
    }

    std::vector<RecordedBlock> finish() {
        for (auto& [address, at] : held_)
            if (at.block)
                at.requested ? end(at, *at.requested, at.requestedNs) : end(at, moment_, lastNs_);
        std::stable_sort(blocks_.begin(), blocks_.end(),
                         [](const auto& a, const auto& b) { return a.first < b.first; });
        return std::move(blocks_);
    }

private:
    struct Held {  // an address
        std::optional<std::size_t> block;
        std::optional<std::int32_t> requested;  // its free, which is to be completed
        std::int64_t requestedNs = 0;
        bool seen = false;  // in an event before
    };

    static std::int64_t taken(const MemoryEventRow& event) {
        const std::int64_t bytes = event.bytes.count();
        return bytes < 0 && bytes != INT64_MIN ? -bytes : 0;
    }

    // A source may tell the request alone.
    void request(const MemoryEventRow& event, std::int32_t now) {
        Held& at = held_[*event.address];
        if (!at.seen) begin(at, event, taken(event), 0, firstNs_);
        at.seen = true;
        if (at.block) at.requested = now, at.requestedNs = event.timeNs;
    }
    void begin(Held& at, const MemoryEventRow& event, std::int64_t bytes, std::int32_t first,
               std::int64_t beginNs) {
        if (bytes <= 0) return;
        at.block = blocks_.size();
        at.requested.reset();
        blocks_.push_back(
            {first, 0, beginNs, 0, *event.address, Bytes(bytes), -1, Category::Unknown});
    }
    void end(Held& at, std::int32_t moment, std::int64_t endNs) {
        RecordedBlock& block = blocks_[*at.block];
        block.end = std::max(moment, block.first + 1);
        block.endNs = std::max(endNs, block.beginNs);
        at.block.reset();
        at.requested.reset();
    }

    std::int64_t device_;
    std::vector<RecordedBlock> blocks_;
    std::unordered_map<std::int64_t, Held> held_;  // by address
    std::int32_t moment_ = 0;
    std::int64_t firstNs_ = 0, lastNs_ = 0;
};

}  // namespace

Result<std::vector<RecordedBlock>> recordedBlocks(const Session& session, std::int64_t device) {
    return guarded(session.path(), "reading memory events", [&] {
        Database& database = databaseOf(session);
        if (auto blocks = storageBlocks(database, DeviceEvents(database, device)); !blocks.empty())
            return blocks;
        BlockFinder finder(device);
        readMemoryEvents(database, [&](const MemoryEventRow& event) { finder.take(event); });
        return finder.finish();
    });
}

Result<std::unordered_map<std::int64_t, std::int64_t>> storageAddresses(const Session& session) {
    return guarded(session.path(), "reading addresses", [&] {
        std::unordered_map<std::int64_t, std::int64_t> addresses;
        Statement from(databaseOf(session),
                       "SELECT id, address FROM storages WHERE address IS NOT NULL");
        while (from.step()) addresses[from.integer(0)] = from.integer(1);
        const auto take = [&](std::int64_t, const StepContents& step) {
            for (const StorageRow& row : step.storages)
                if (row.address) addresses[row.id] = *row.address;
        };
        visitPackedSteps(databaseOf(session), OpDetail::Edges, take);
        return addresses;
    });
}

}  // namespace hw::core

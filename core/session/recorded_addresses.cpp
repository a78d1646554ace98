// SPDX-License-Identifier: MIT
#include "core/session/recorded_addresses.h"

#include <algorithm>
#include <limits>

#include "core/session/access.h"
#include "core/session/guarded.h"
#include "core/session/memory_events.h"
#include "core/session/step_rows.h"

namespace hw::core {

Result<std::vector<RecordedBlock>> recordedBlocks(const Session& session, std::int64_t device) {
    return guarded(session.path(), "reading memory events", [&] {
        std::vector<RecordedBlock> blocks;
        std::unordered_map<std::int64_t, std::size_t> held;  // by address
        std::int32_t moment = 0;
        std::int64_t lastNs = 0;
        const auto take = [&](const MemoryEventRow& event) {
            if (event.device != device || !event.allocated) return;
            const std::int32_t now = moment++;
            lastNs = std::max(lastNs, event.timeNs);
            if (!event.address) return;
            const bool given = event.kind == "alloc" && event.bytes > Bytes(0);
            const bool taken = event.kind == "free" || event.kind == "free_completed" ||
                               (event.kind == "alloc" && event.bytes < Bytes(0));
            if (!given && !taken) return;
            if (const auto at = held.find(*event.address); at != held.end()) {
                blocks[at->second].end = now;
                blocks[at->second].endNs = event.timeNs;
                held.erase(at);
            }
            if (!given) return;
            held[*event.address] = blocks.size();
            blocks.push_back({now, 0, event.timeNs, 0, *event.address, event.bytes});
        };
        readMemoryEvents(databaseOf(session), std::numeric_limits<std::int64_t>::min(),
                         std::numeric_limits<std::int64_t>::max(), take);
        for (const auto& [address, block] : held)
            blocks[block].end = moment, blocks[block].endNs = lastNs;
        return blocks;
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

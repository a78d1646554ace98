// SPDX-License-Identifier: MIT
#include "core/session/replay_events.h"

#include <unordered_map>

namespace hw::core {

CachingAllocatorStats replayEvents(std::span<const MemoryEventRow> events, std::int64_t device) {
    CachingAllocator allocator;
    std::unordered_map<std::int64_t, CachingAllocator::BlockId> held;
    for (const MemoryEventRow& event : events) {
        if (event.device != device || !event.address) continue;
        const bool allocation = event.kind == "alloc" && event.bytes > Bytes(0);
        const bool release = event.kind == "free" || event.kind == "free_completed" ||
                             (event.kind == "alloc" && event.bytes < Bytes(0));
        const auto at = held.find(*event.address);
        if ((allocation || release) && at != held.end()) {
            allocator.release(at->second);  // an address given out twice was released unseen
            held.erase(at);
        }
        if (allocation)
            if (const auto block = allocator.allocate(event.bytes)) held[*event.address] = *block;
    }
    return allocator.stats();
}

}  // namespace hw::core

// SPDX-License-Identifier: MIT
#include "core/session/memory_events.h"

#include <cstdlib>
#include <limits>

namespace hw::core {
namespace {

SeriesKey keyOf(const MemoryEventRow& event, const char* what) {
    SeriesKey key;
    key.name = (event.device < 0 ? "host" : "device " + std::to_string(event.device)) + " " + what;
    key.axis = event.timeNs == 0 ? SeriesAxis::Event : SeriesAxis::Time;
    key.device = event.device;
    return key;
}

/// What an event changes: allocated bytes, and bytes reserved from the driver.
void countEvent(const MemoryEventRow& event, std::int64_t& allocated, std::int64_t& reserved) {
    const std::int64_t bytes = std::abs(event.bytes.count());
    const std::string& kind = event.kind;
    if (kind == "segment_alloc" || kind == "segment_map")
        reserved += bytes;
    else if (kind == "segment_free" || kind == "segment_unmap")
        reserved -= bytes;
    else if (kind == "free" || kind == "free_completed")
        allocated -= bytes;
    else if (kind == "alloc")
        allocated += event.bytes.count();  // some sources log a release as a negative allocation
}

}  // namespace

MemoryEventWriter::MemoryEventWriter(Database& database)
    : database_(database),
      insert_(database,
              "INSERT OR REPLACE INTO memory_chunks(first_event, count, begin_ns, end_ns, data)"
              " VALUES(?,?,?,?,?)") {
    Statement last(database,
                   "SELECT first_event + count FROM memory_chunks ORDER BY first_event DESC"
                   " LIMIT 1");
    if (last.step()) firstId_ = last.integer(0);
}

MemoryEventWriter::Device& MemoryEventWriter::device(const MemoryEventRow& event) {
    if (lastDevice_ != nullptr && lastOrdinal_ == event.device) return *lastDevice_;
    std::unique_ptr<Device>& found = devices_[event.device];
    if (!found) {
        found.reset(new Device{{database_, keyOf(event, "allocated")},
                               {database_, keyOf(event, "reserved")}});
        found->countedAllocated = found->allocated.lastValue().value_or(0);
        found->countedReserved = found->reserved.lastValue().value_or(0);
    }
    lastDevice_ = found.get();
    lastOrdinal_ = event.device;
    return *found;
}

void MemoryEventWriter::append(const MemoryEventRow& event) {
    Device& to = device(event);
    const std::int64_t id = firstId_ + chunk_.count();
    chunk_.append(event);
    changed_ = true;
    if (!event.allocated || !event.reserved)
        countEvent(event, to.countedAllocated, to.countedReserved);
    to.allocated.append(to.allocated.axis() == SeriesAxis::Time ? event.timeNs : id,
                        event.allocated.value_or(to.countedAllocated));
    to.reserved.append(to.reserved.axis() == SeriesAxis::Time ? event.timeNs : id,
                       event.reserved.value_or(to.countedReserved));
    if (chunk_.count() == kMemoryChunkEvents) {
        writeChunk();
        firstId_ += chunk_.count();
        chunk_.clear();
    }
}

void MemoryEventWriter::writeChunk() {
    insert_.bind(1, firstId_).bind(2, chunk_.count());
    insert_.bind(3, chunk_.earliestNs()).bind(4, chunk_.latestNs());
    insert_.bindBlob(5, chunk_.blob()).execute();
}

void MemoryEventWriter::flush() {
    if (!changed_) return;
    changed_ = false;
    if (chunk_.count() > 0) writeChunk();
    for (auto& [ordinal, device] : devices_) {
        device->allocated.flush();
        device->reserved.flush();
    }
}

void readMemoryEvents(Database& database, std::int64_t begin, std::int64_t end,
                      const std::function<void(const MemoryEventRow&)>& take) {
    Statement from(database,
                   // The index alone tells which blocks matter: they are large.
                   "SELECT data FROM memory_chunks WHERE first_event IN"
                   " (SELECT first_event FROM memory_chunks INDEXED BY memory_chunks_time"
                   " WHERE end_ns >= ? AND begin_ns < ?) ORDER BY first_event");
    from.bind(1, begin).bind(2, end);
    while (from.step()) {
        const bool whole = decodeMemoryChunk(from.blob(0), [&](const MemoryEventRow& event) {
            if (event.timeNs >= begin && event.timeNs < end) take(event);
        });
        if (!whole) throw DatabaseError{0, "a block of memory events is damaged"};
    }
}

void readMemoryEvents(Database& database, const std::function<void(const MemoryEventRow&)>& take) {
    readMemoryEvents(database, std::numeric_limits<std::int64_t>::min(),
                     std::numeric_limits<std::int64_t>::max(), take);
}

std::int64_t countMemoryEvents(Database& database) {
    Statement from(database,
                   "SELECT first_event + count FROM memory_chunks ORDER BY first_event DESC"
                   " LIMIT 1");
    return from.step() ? from.integer(0) : 0;
}

}  // namespace hw::core

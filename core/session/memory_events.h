// SPDX-License-Identifier: MIT
// The memory events of a session: gathered in chunks, with the series of each device built on the
// way. Private to core/session; everything here throws DatabaseError.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "core/session/memory_chunk.h"
#include "core/session/series_writer.h"

namespace hw::core {

class MemoryEventWriter {
public:
    explicit MemoryEventWriter(Database& database);

    void append(const MemoryEventRow& event);
    /// Writes what is gathered: the chunk that is not full yet and the tails of the series.
    void flush();

private:
    /// Two series of a device. A source without running totals is counted, from 0.
    struct Device {
        SeriesWriter allocated, reserved;
        std::int64_t countedAllocated = 0, countedReserved = 0;
    };
    Device& device(const MemoryEventRow& event);
    void writeChunk();

    Database& database_;
    Statement insert_;
    MemoryChunkEncoder chunk_;
    std::int64_t firstId_ = 0;  // of the chunk's first event
    bool changed_ = false;
    std::map<std::int64_t, std::unique_ptr<Device>> devices_;
    Device* lastDevice_ = nullptr;
    std::int64_t lastOrdinal_ = 0;
};

/// Events with begin <= time < end, in the order of their arrival.
void readMemoryEvents(Database& database, std::int64_t begin, std::int64_t end,
                      const std::function<void(const MemoryEventRow&)>& take);
/// All of them.
void readMemoryEvents(Database& database, const std::function<void(const MemoryEventRow&)>& take);
std::int64_t countMemoryEvents(Database& database);

}  // namespace hw::core

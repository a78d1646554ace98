// SPDX-License-Identifier: MIT
// Memory events as they lie in the file: up to kMemoryChunkEvents of them in one blob, each as its
// difference to the one before. Private to core/session.
//
// A blob is: count, number of kinds, the kinds' names, then the events. An event is a number whose
// low bits say which fields follow (the others are those of the event before, or absent) and whose
// high bits are the kind's index; then time, device, address, bytes, allocated (less the allocated
// bytes before and this event's bytes), reserved, and its place: seq and op.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/base/varint.h"
#include "core/session/rows.h"

namespace hw::core {

inline constexpr std::int64_t kMemoryChunkEvents = 4096;

class MemoryChunkEncoder {
public:
    void append(const MemoryEventRow& event);
    void clear();  // starts a new chunk; kinds stay known
    std::int64_t count() const { return count_; }
    std::int64_t earliestNs() const { return earliest_; }  // 0 when there are no events
    std::int64_t latestNs() const { return latest_; }
    std::vector<std::byte> blob() const;

private:
    std::uint64_t kindIndex(const std::string& kind);

    VarintWriter events_;
    std::vector<std::string> kinds_;
    MemoryEventRow last_;
    std::int64_t count_ = 0, earliest_ = 0, latest_ = 0;
};

/// Calls `take` for every event of a blob, in order. False when the blob is malformed; what came
/// before the fault has been taken.
bool decodeMemoryChunk(std::span<const std::byte> blob,
                       const std::function<void(const MemoryEventRow&)>& take);

}  // namespace hw::core

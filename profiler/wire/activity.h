// SPDX-License-Identifier: MIT
// What a GPU did, as it travels in an Activities frame: one fixed form for all kinds.
#pragma once

#include <cstdint>

namespace hw::profiler::wire {

enum class ActivityKind : std::uint8_t {
    Kernel = 1,
    Copy = 2,      // detail: CUpti_ActivityMemcpyKind, value: bytes
    Set = 3,       // value: bytes
    Api = 4,       // detail: 0 runtime, 1 driver; stream: thread; extra: callback id
    External = 5,  // value: begin time of the op that the correlation belongs to
    Memory = 6,    // detail: MemoryDetail, extra: CUpti_ActivityMemoryKind
    Pool = 7,    // detail: CUpti_ActivityMemoryPoolOperationType, value: size, end: utilized bytes
    Marker = 8,  // detail: MarkerDetail, value: id; stream: thread where it is one's
    Sync = 9,    // detail: CUpti_ActivitySynchronizationType
    Overhead = 10  // of CUPTI itself; detail: CUpti_ActivityOverheadKind >> 16
};
inline constexpr std::uint8_t kActivityKinds = 11;  // one more than the last

enum class MemoryDetail : std::uint8_t {
    Allocate = 1,
    Release = 2,
    Create = 3,   // cuMemCreate: physical memory of an expandable segment
    Destroy = 4,  // cuMemRelease
    Map = 5,      // cuMemMap: it becomes part of the segment
    Unmap = 6
};
enum class MarkerDetail : std::uint8_t { Instant = 1, Start = 2, End = 3 };

/// Flag: begin and end are on the recorder's own clock, not on the one of CUPTI.
inline constexpr std::uint16_t kActivityHostClock = 1;

struct Activity {
    std::uint8_t kind = 0, detail = 0;
    std::uint16_t flags = 0;
    std::uint32_t correlation = 0, device = 0, stream = 0;
    std::int64_t begin = 0, end = 0;  // ns
    std::int64_t value = 0, address = 0;
    std::uint32_t name = 0;  // of a Name frame sent before; 0: none
    std::uint32_t extra = 0;
};
static_assert(sizeof(Activity) == 56);

}  // namespace hw::profiler::wire

// SPDX-License-Identifier: MIT
// The memory that carries records from the agent to the recorder: made by the recorder, handed over
// with the configuration, mapped by both. Records that are in it survive the training process.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace hw::profiler::wire {

/// At the start of the memory. Both count bytes since the beginning and only grow.
struct RingHead {
    alignas(64) std::atomic<std::uint64_t> written;  // by the agent; up to here frames are readable
    alignas(64) std::atomic<std::uint64_t> taken;    // by the recorder
};

inline constexpr std::size_t kRingHeadBytes = 4096;
inline constexpr std::size_t kRingBytes = 16u << 20;  // of records, after the head

}  // namespace hw::profiler::wire

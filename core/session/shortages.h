// SPDX-License-Identifier: MIT
// Allocations that failed while a session was recorded, as `meta` keeps them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/units.h"
#include "core/session/session.h"

namespace hw::core {

/// An allocation for which there was no memory.
struct Shortage {
    std::string device;        // "cuda:0"
    std::int64_t ordinal = 0;  // of MemoryEventRow::device
    std::int64_t seq = 0;      // of its memory event
    std::int64_t timeNs = 0;   // 0: the source tells no times
    Bytes asked;
    std::optional<Bytes> free;  // what the driver still had; none: not told
    Bytes allocated;            // on the device then
    std::string place;          // "train.py:10 forward"; empty: not told
};

inline constexpr const char* kShortagesKey = "out_of_memory";
inline constexpr std::size_t kMostShortages = 1000;

std::string shortagesText(const std::vector<Shortage>& shortages);
/// Those of a session, by their order. Empty where there are none or what is kept of them is
/// damaged.
std::vector<Shortage> loadShortages(const Session& session);

/// "out of memory: asked for 314.6 MB, 7.3 MB were free, 41.9 MB allocated, at train.py:10 forward"
std::string describeShortage(const Shortage& shortage);

}  // namespace hw::core

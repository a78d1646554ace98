// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <span>

#include "core/memory/caching_allocator.h"
#include "core/session/session.h"

namespace hw::core {

/// What PyTorch's caching allocator would make of recorded events: replays "alloc" and "free" or
/// "free_completed" by address; others, releases of unknown addresses and events of other devices
/// are passed over.
CachingAllocatorStats replayEvents(std::span<const MemoryEventRow> events, std::int64_t device);

}  // namespace hw::core

// SPDX-License-Identifier: MIT
// Where the memory behind a tracker comes from: the host, or a device.
#pragma once

#include <cstddef>

#include "core/base/units.h"

namespace hw::executor {

/// Thread-safe.
class MemorySource {
public:
    virtual ~MemorySource() = default;
    /// `bytes` (more than 0) at a multiple of `alignment`, a power of two; nullptr when there is no
    /// memory left.
    virtual void* take(std::size_t bytes, std::size_t alignment) = 0;
    virtual void give(void* block) = 0;
    virtual void fill(void* block, int byte, std::size_t bytes) = 0;
    /// Of every block, and of the offsets in an arena.
    virtual core::Bytes alignment() const = 0;
};

/// The C library's memory, aligned to core::kArenaAlignment.
MemorySource& hostMemory();

}  // namespace hw::executor

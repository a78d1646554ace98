// SPDX-License-Identifier: MIT
// A model of PyTorch's CUDA caching allocator in its default settings: what a stream of allocations
// and releases reserves from the driver. Rules after the documented behaviour of
// c10::cuda::CUDACachingAllocator: sizes in units of 512 bytes; blocks up to 1 MiB from segments of
// 2 MiB, up to 10 MiB from segments of 20 MiB, larger ones from their own in units of 2 MiB; best
// fit among the free blocks of pool and stream; a rest is split off where it is worth it; free
// neighbours within a segment are joined; without room, wholly free segments go back to the driver.
// Not modelled: expandable segments, max_split_size, the wait of blocks that several streams use.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "core/base/units.h"
#include "core/memory/layout.h"

namespace hw::core {

struct CachingAllocatorStats {
    Bytes requested, allocated, reserved;              // now; allocated is rounded to 512 bytes
    Bytes peakRequested, peakAllocated, peakReserved;  // of each, at its own time
    std::int64_t segments = 0;                         // asked from the driver, ever
    std::int64_t emptied = 0;  // times that cached segments went back for want of room
    std::int64_t failed = 0;   // allocations for which there was no room

    /// Share of the reserved peak that blocks never used at once, 0 to 1.
    double fragmentation() const {
        return peakReserved == Bytes(0) ? 0 : 1 - ratio(peakAllocated, peakReserved);
    }
};

class CachingAllocator {
public:
    using BlockId = std::int64_t;

    /// `capacity`: what the driver can give; none: as much as is asked for.
    explicit CachingAllocator(std::optional<Bytes> capacity = std::nullopt) : capacity_(capacity) {}

    /// None when there is no room. An allocation of no bytes takes no block: id -1.
    std::optional<BlockId> allocate(Bytes bytes, std::int64_t stream = 0);
    /// `block` must have come from allocate() and not been released since; -1 does nothing.
    void release(BlockId block);
    /// Gives wholly free segments back to the driver.
    void emptyCache();

    const CachingAllocatorStats& stats() const { return stats_; }
    Bytes largestFreeBlock() const;

private:
    struct Block {
        std::int64_t address = 0, bytes = 0, requested = 0, stream = 0;
        bool small = false, free = false;
        BlockId previous = -1, next = -1;  // neighbours in the segment
    };
    using FreeKey = std::tuple<bool, std::int64_t, std::int64_t, std::int64_t,
                               BlockId>;  // small, stream, bytes, address
    static FreeKey keyOf(const Block& block, BlockId id);
    std::optional<BlockId> newSegment(std::int64_t bytes, bool small, std::int64_t stream);
    void split(BlockId id, std::int64_t bytes);
    BlockId join(BlockId first, BlockId second);

    std::optional<Bytes> capacity_;
    std::map<BlockId, Block> blocks_;
    std::set<FreeKey> free_;
    BlockId nextId_ = 0;
    std::int64_t nextAddress_ = 0;
    CachingAllocatorStats stats_;
};

/// Replays blocks with lifetimes (at one time releases come first, then allocations in order).
CachingAllocatorStats replayBlocks(const std::vector<Block>& blocks,
                                   std::optional<Bytes> capacity = std::nullopt);

}  // namespace hw::core

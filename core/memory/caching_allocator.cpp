// SPDX-License-Identifier: MIT
#include "core/memory/caching_allocator.h"

#include <algorithm>
#include <cstdlib>

namespace hw::core {
namespace {

constexpr std::int64_t kUnit = 512;
constexpr std::int64_t kMiB = 1 << 20;
constexpr std::int64_t kSmallSize = kMiB;          // largest block of the small pool
constexpr std::int64_t kSmallSegment = 2 * kMiB;   // segments of the small pool
constexpr std::int64_t kLargeSegment = 20 * kMiB;  // segments of the large pool …
constexpr std::int64_t kOwnSegment = 10 * kMiB;    // … but blocks from here on have their own
constexpr std::int64_t kSegmentUnit = 2 * kMiB;

std::int64_t roundUp(std::int64_t bytes, std::int64_t unit) {
    return (bytes + unit - 1) / unit * unit;
}

std::int64_t segmentBytes(std::int64_t bytes) {
    if (bytes <= kSmallSize) return kSmallSegment;
    return bytes < kOwnSegment ? kLargeSegment : roundUp(bytes, kSegmentUnit);
}

}  // namespace

CachingAllocator::FreeKey CachingAllocator::keyOf(const Block& block, BlockId id) {
    return {block.small, block.stream, block.bytes, block.address, id};
}

std::optional<CachingAllocator::BlockId> CachingAllocator::allocate(Bytes bytes,
                                                                    std::int64_t stream) {
    if (bytes <= Bytes(0)) return -1;
    const std::int64_t rounded = roundUp(bytes.count(), kUnit);
    const bool small = rounded <= kSmallSize;
    const auto fit = free_.lower_bound({small, stream, rounded, 0, -1});
    BlockId id = -1;
    if (fit != free_.end() && std::get<0>(*fit) == small && std::get<1>(*fit) == stream) {
        id = std::get<4>(*fit);
        free_.erase(fit);
    } else {
        const auto made = newSegment(segmentBytes(rounded), small, stream);
        if (!made) {
            ++stats_.failed;
            return std::nullopt;
        }
        id = *made;
    }
    const std::int64_t rest = blocks_[id].bytes - rounded;
    if (small ? rest >= kUnit : rest > kSmallSize) split(id, rounded);
    Block& block = blocks_[id];
    block.free = false;
    block.requested = bytes.count();
    stats_.requested += bytes;
    stats_.allocated += Bytes(block.bytes);
    stats_.peakRequested = std::max(stats_.peakRequested, stats_.requested);
    stats_.peakAllocated = std::max(stats_.peakAllocated, stats_.allocated);
    stats_.peakReserved = std::max(stats_.peakReserved, stats_.reserved);
    return id;
}

std::optional<CachingAllocator::BlockId> CachingAllocator::newSegment(std::int64_t bytes,
                                                                      bool small,
                                                                      std::int64_t stream) {
    if (capacity_ && stats_.reserved + Bytes(bytes) > *capacity_) {
        emptyCache();
        ++stats_.emptied;
        if (stats_.reserved + Bytes(bytes) > *capacity_) return std::nullopt;
    }
    const BlockId id = nextId_++;
    blocks_[id] = {nextAddress_, bytes, 0, stream, small, false, -1, -1};
    nextAddress_ += bytes;
    stats_.reserved += Bytes(bytes);
    ++stats_.segments;
    return id;
}

void CachingAllocator::split(BlockId id, std::int64_t bytes) {
    const BlockId restId = nextId_++;
    Block& block = blocks_[id];
    Block rest = block;
    rest.address += bytes;
    rest.bytes -= bytes;
    rest.previous = id;
    rest.free = true;
    block.bytes = bytes;
    block.next = restId;
    if (rest.next != -1) blocks_[rest.next].previous = restId;
    free_.insert(keyOf(rest, restId));
    blocks_[restId] = rest;
}

CachingAllocator::BlockId CachingAllocator::join(BlockId first, BlockId second) {
    Block& block = blocks_[first];
    const Block gone = blocks_[second];
    block.bytes += gone.bytes;
    block.next = gone.next;
    if (gone.next != -1) blocks_[gone.next].previous = first;
    blocks_.erase(second);
    return first;
}

void CachingAllocator::release(BlockId id) {
    if (id < 0) return;
    {
        Block& block = blocks_[id];
        stats_.requested -= Bytes(block.requested);
        stats_.allocated -= Bytes(block.bytes);
        block.free = true;
    }
    const BlockId previous = blocks_[id].previous, next = blocks_[id].next;
    if (next != -1 && blocks_[next].free) {
        free_.erase(keyOf(blocks_[next], next));
        join(id, next);
    }
    if (previous != -1 && blocks_[previous].free) {
        free_.erase(keyOf(blocks_[previous], previous));
        id = join(previous, id);
    }
    free_.insert(keyOf(blocks_[id], id));
}

void CachingAllocator::emptyCache() {
    for (auto at = free_.begin(); at != free_.end();) {
        const BlockId id = std::get<4>(*at);
        const Block& block = blocks_[id];
        if (block.previous != -1 || block.next != -1) {
            ++at;
            continue;
        }
        stats_.reserved -= Bytes(block.bytes);
        blocks_.erase(id);
        at = free_.erase(at);
    }
}

Bytes CachingAllocator::largestFreeBlock() const {
    std::int64_t largest = 0;
    for (const FreeKey& key : free_) largest = std::max(largest, std::get<2>(key));
    return Bytes(largest);
}

CachingAllocatorStats replayBlocks(const std::vector<Block>& blocks,
                                   std::optional<Bytes> capacity) {
    struct Moment {
        std::int64_t time;
        bool allocate;
        std::size_t block;
    };
    std::vector<Moment> moments;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        if (!blocks[i].takesSpace()) continue;
        moments.push_back({blocks[i].begin, true, i});
        moments.push_back({blocks[i].end, false, i});
    }
    std::stable_sort(moments.begin(), moments.end(), [](const Moment& a, const Moment& b) {
        return std::tie(a.time, a.allocate) < std::tie(b.time, b.allocate);
    });
    CachingAllocator allocator(capacity);
    std::vector<CachingAllocator::BlockId> held(blocks.size(), -1);
    for (const Moment& moment : moments) {
        if (moment.allocate)
            held[moment.block] = allocator.allocate(blocks[moment.block].size).value_or(-1);
        else
            allocator.release(held[moment.block]);
    }
    return allocator.stats();
}

}  // namespace hw::core

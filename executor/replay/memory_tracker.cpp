// SPDX-License-Identifier: MIT
#include "executor/replay/memory_tracker.h"

#include <algorithm>

namespace hw::executor {
namespace {

constexpr std::size_t kPage = 4096;
constexpr int kFreedByte = 0xff;  // reads as NaN in every floating type

}  // namespace

MemoryTracker::~MemoryTracker() {
    if (arena_) source_.give(arena_);
}

core::Status MemoryTracker::setArena(core::Bytes size) {
    const std::lock_guard lock(mutex_);
    if (!inArena_.empty())
        return core::Error{core::ErrorCode::Internal,
                           "the arena is exchanged while blocks of it are live", ""};
    arenaSize_ = size.count();
    arenaTop_ = 0;
    if (arenaSize_ > 0 && arenaSize_ <= arenaReserved_) return {};
    if (arena_) source_.give(arena_);
    arena_ = nullptr;
    arenaReserved_ = arenaSize_;
    if (arenaSize_ == 0) return {};
    arena_ = static_cast<std::byte*>(source_.take(static_cast<std::size_t>(arenaSize_), kPage));
    if (arena_) return {};
    arenaSize_ = arenaReserved_ = 0;
    return core::Error{core::ErrorCode::Internal,
                       "no memory for an arena of " + core::humanBytes(size),
                       "close other programs or plan with a smaller budget"};
}

void MemoryTracker::resetFigures() {
    const std::lock_guard lock(mutex_);
    peak_ = live_;
    arenaTop_ = 0;
    fallbacks_.clear();
}

core::Bytes MemoryTracker::disownLive() {
    const std::lock_guard lock(mutex_);
    for (auto& [pointer, block] : blocks_) block.counted = false;
    const core::Bytes live(live_);
    live_ = peak_ = 0;
    return live;
}

void MemoryTracker::beginWindow(const std::string* name, const std::vector<ArenaSlot>* slots,
                                bool record) {
    const std::lock_guard lock(mutex_);
    open_ = true;
    recording_ = record;
    ++window_;
    windowName_ = name;
    slots_ = arena_ ? slots : nullptr;
    nextSlot_ = 0;
    windowPeak_ = live_;
    signature_ = {};
}

OpSignature MemoryTracker::endWindow() {
    const std::lock_guard lock(mutex_);
    if (slots_ && nextSlot_ < slots_->size())
        fallbacks_.push_back({*windowName_, nextSlot_, "it made fewer allocations than planned"});
    open_ = recording_ = false;
    slots_ = nullptr;
    return std::move(signature_);
}

bool MemoryTracker::overlapsLive(std::int64_t offset, std::int64_t bytes) const {
    const auto next = inArena_.lower_bound(offset);
    if (next != inArena_.end() && next->first < offset + bytes) return true;
    return next != inArena_.begin() && std::prev(next)->second > offset;
}

std::byte* MemoryTracker::placeInArena(std::int64_t bytes) {
    const std::size_t k = nextSlot_++;
    std::string why;
    if (k >= slots_->size()) {
        why = "it made more allocations than planned";
    } else if (const ArenaSlot& slot = (*slots_)[k]; slot.bytes.count() != bytes) {
        why = "it asked for " + std::to_string(bytes) + " bytes where " +
              std::to_string(slot.bytes.count()) + " were planned";
    } else if (slot.offset.count() < 0 || slot.offset.count() + bytes > arenaSize_) {
        why = "its place is outside the arena";
    } else if (overlapsLive(slot.offset.count(), bytes)) {
        why = "its place is taken by a live block";
    } else {
        inArena_[slot.offset.count()] = slot.offset.count() + bytes;
        arenaTop_ = std::max(arenaTop_, slot.offset.count() + bytes);
        return arena_ + slot.offset.count();
    }
    fallbacks_.push_back({*windowName_, k, std::move(why)});
    return nullptr;
}

void* MemoryTracker::allocate(std::size_t bytes) {
    if (bytes == 0) return nullptr;
    const std::lock_guard lock(mutex_);
    Live block{static_cast<std::int64_t>(bytes), open_, false, std::nullopt, window_};
    void* pointer = nullptr;
    if (open_ && slots_) pointer = placeInArena(block.bytes);
    block.inArena = pointer != nullptr;
    if (!pointer)
        pointer = source_.take(bytes, static_cast<std::size_t>(source_.alignment().count()));
    if (!pointer) return nullptr;
    if (checking_) source_.fill(pointer, 0, bytes);
    if (open_) {
        live_ += block.bytes;
        peak_ = std::max(peak_, live_);
        windowPeak_ = std::max(windowPeak_, live_);
        if (recording_) {
            block.recorded = signature_.allocations.size();
            signature_.allocations.push_back({core::Bytes(block.bytes), std::nullopt,
                                              signature_.events++, std::nullopt, pointer});
        }
    }
    blocks_[pointer] = block;
    return pointer;
}

void MemoryTracker::release(void* pointer) {
    if (!pointer) return;
    const std::lock_guard lock(mutex_);
    const auto at = blocks_.find(pointer);
    if (at == blocks_.end()) {  // made before this allocator was installed
        source_.give(pointer);
        return;
    }
    const Live block = at->second;
    blocks_.erase(at);
    if (block.counted) live_ -= block.bytes;
    if (recording_ && block.recorded && block.window == window_)
        signature_.allocations[*block.recorded].endEvent = signature_.events++;
    if (checking_) source_.fill(pointer, kFreedByte, static_cast<std::size_t>(block.bytes));
    if (block.inArena)
        inArena_.erase(static_cast<std::byte*>(pointer) - arena_);
    else
        source_.give(pointer);
}

}  // namespace hw::executor

// SPDX-License-Identifier: MIT
// Counts every byte that the kernels ask for, records the allocation signature of an op, and serves
// blocks from an arena at offsets that were planned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/result.h"
#include "core/base/units.h"
#include "core/memory/signature.h"
#include "executor/replay/memory_source.h"

namespace hw::executor {

using core::Allocation;
using core::OpSignature;

/// A planned place of one allocation.
struct ArenaSlot {
    core::Bytes offset;
    core::Bytes bytes;
};

/// An allocation that could not be served from the arena as planned.
struct Fallback {
    std::string where;      // the op, or the constant
    std::size_t index = 0;  // k-th allocation of it
    std::string why;
};

/// The allocator behind the kernels. Thread-safe: kernels may allocate from a thread pool.
///
/// Outside a *window* (an op, or a constant that comes into being) memory is the executor's own and
/// is not counted. Blocks are aligned as their source aligns them. A request of 0 bytes is no
/// allocation.
class MemoryTracker {
public:
    explicit MemoryTracker(MemorySource& source = hostMemory()) : source_(source) {}
    ~MemoryTracker();
    MemoryTracker(const MemoryTracker&) = delete;
    MemoryTracker& operator=(const MemoryTracker&) = delete;

    /// nullptr for 0 bytes and when the system has no memory left.
    void* allocate(std::size_t bytes);
    void release(void* pointer);

    /// Reserves an arena of the given size, or gives it back (0); a smaller one than before is
    /// served from the same memory, so that its pages stay warm. No block of it may be live.
    core::Status setArena(core::Bytes size);
    /// In checking mode new blocks are zero and freed ones are overwritten, so that memory that no
    /// kernel wrote is equal in every run, and a read of freed memory is not.
    void setChecking(bool checking) { checking_ = checking; }
    /// Forgets peaks and fallbacks. What is live stays counted.
    void resetFigures();
    /// Stops counting what is live: workspaces that kernel libraries keep. Returns their bytes.
    core::Bytes disownLive();
    core::Bytes alignment() const { return source_.alignment(); }

    /// Opens a window. With `slots` the k-th allocation goes to the k-th slot of the arena.
    void beginWindow(const std::string* name, const std::vector<ArenaSlot>* slots, bool record);
    /// Closes it and returns what it allocated (when recording).
    OpSignature endWindow();

    core::Bytes live() const { return core::Bytes(live_); }
    core::Bytes peak() const { return core::Bytes(peak_); }              // since resetFigures()
    core::Bytes windowPeak() const { return core::Bytes(windowPeak_); }  // since beginWindow()
    core::Bytes arenaTop() const { return core::Bytes(arenaTop_); }  // highest end of a block used
    const std::vector<Fallback>& fallbacks() const { return fallbacks_; }

private:
    struct Live {
        std::int64_t bytes = 0;
        bool counted = false;
        bool inArena = false;
        std::optional<std::size_t> recorded;  // place in the signature being recorded
        std::uint64_t window = 0;
    };

    std::byte* placeInArena(std::int64_t bytes);
    bool overlapsLive(std::int64_t offset, std::int64_t bytes) const;

    MemorySource& source_;
    std::mutex mutex_;
    std::unordered_map<const void*, Live> blocks_;
    std::byte* arena_ = nullptr;
    std::int64_t arenaSize_ = 0, arenaReserved_ = 0;
    std::map<std::int64_t, std::int64_t> inArena_;  // offset -> end of the live blocks of the arena
    bool checking_ = false;

    bool open_ = false;
    bool recording_ = false;
    std::uint64_t window_ = 0;
    const std::string* windowName_ = nullptr;
    const std::vector<ArenaSlot>* slots_ = nullptr;
    std::size_t nextSlot_ = 0;
    OpSignature signature_;

    std::int64_t live_ = 0, peak_ = 0, windowPeak_ = 0, arenaTop_ = 0;
    std::vector<Fallback> fallbacks_;
};

}  // namespace hw::executor

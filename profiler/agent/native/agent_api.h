// SPDX-License-Identifier: MIT
// What the native capture calls of the agent that loaded it; filled in agent/exports.cpp.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace hw::profiler::native {

/// Between two calls of freed(): more are lost.
inline constexpr std::int64_t kMostFreed = 8192;
inline constexpr std::uint64_t kBlockAlignment = 64;  // of the framework's allocator
/// Instead of a layer: that of autograd's node that runs.
inline constexpr std::int64_t kBackwardLayer = -2;

/// Around an op. hw_begin() fills the first two, with the clock read last, and hw_end() the others,
/// with the clock read first: the calls themselves take none of the op's time.
struct OpWindow {
    std::int64_t liveBefore = 0;  // bytes
    std::int64_t beginNs = 0;
    std::int64_t live = 0;
    std::int64_t peak = 0;  // highest live bytes since hw_begin()
    std::int64_t endNs = 0;
};

/// Of live bytes, from one look at them to the next.
struct MemoryWindow {
    std::int64_t live = 0;
    std::int64_t peak = 0;
};

/// A block of memory that gets a tag.
struct TaggedBlock {
    std::int64_t bytes = -1;  // -1: it is not counted
    std::int64_t before = 0;  // the tag that it had; 0: none
    std::int64_t steps = -1;  // that had begun when it was allocated; -1: not known any more
};

/// What the agent was asked for.
struct CaptureConfig {
    std::int64_t steps = 0;
    std::int64_t warmup = 0;
    std::int64_t every = 0;
    std::int64_t flags = 0;  // kConfig… of wire/records.h
};

/// What the capture in C++ has come to.
struct RegistryFigures {
    std::int64_t seq = 0;        // the next sequence number
    std::int64_t uncounted = 0;  // bytes that the agent does not count
    std::int64_t opPeak = 0;     // highest bytes during an op of this step
    std::int64_t ops = 0;
};

/// An allocation that finds no room.
struct Shortage {
    std::int64_t bytes;
    int memory;  // 1: there is no more memory; 0: it would pass the limit on live bytes
    int before;  // how often room has been made for it, which was not enough
};

/// What comes of it. Above: it passes the limit, as there is no other way and it must not fail.
enum class Reclaim : int { None = 0, Made = 1, Above = 2 };
using MakeRoom = Reclaim (*)(const Shortage& shortage);

struct AgentApi {
    std::uint64_t size;  // of this structure: an agent of another build is not called
    int (*sendFrames)(const void* data, std::int64_t bytes);  // whole frames; 0 queued, -1 broken
    /// Gives the block a tag, which freed() will tell; 1: it will, 0: its end goes unseen. Tags are
    /// below 2^63. `uncounted`: whether a block that was made unseen may go through the framework's
    /// allocator.
    int (*tag)(std::uint64_t address, std::uint64_t tag, int uncounted, TaggedBlock* block);
    std::int64_t (*freed)(std::int64_t* tags);  // -1: some were lost
    const std::atomic<std::size_t>* pending;    // how many freed() would tell
    void (*begin)(OpWindow* window);            // see OpWindow
    void (*end)(OpWindow* window);
    void (*pause)(int paused);
    std::int64_t (*block)(std::uint64_t address);  // its bytes, -1 when it is not counted
    void (*window)(MemoryWindow* window);
    std::int64_t (*now)();  // nanoseconds, as all events have them
    /// Of an allocator that the agent does not see by itself; see countAllocated().
    void (*allocated)(std::uint64_t address, std::int64_t bytes);
    void (*released)(std::uint64_t address);
    /// Who is asked before an allocation passes the limit on live bytes and where there is no
    /// memory, again and again as long as there is room made; with none the framework's allocator
    /// is refused. Null: there is no limit.
    void (*onShortage)(MakeRoom makeRoom);
    /// The same for an allocator that the agent does not see by itself. Before it makes a block of
    /// so many bytes: 1: it may, 0: that would pass the limit.
    int (*admit)(std::int64_t bytes);
    /// It has no memory for the block: 1: as many bytes have gone, or all that could; 0: none.
    int (*rescue)(Shortage* shortage);
    std::int64_t (*stepBegins)();  // how many have begun, with this one
    /// See agent/checksum.h.
    std::uint64_t (*checksum)(const void* data, std::int64_t bytes, std::int64_t every,
                              std::int64_t phase);
};

/// What this thread allocates meanwhile is not counted.
class Pause {
public:
    explicit Pause(const AgentApi& agent) : agent_(agent) { agent_.pause(1); }
    ~Pause() { agent_.pause(0); }
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

private:
    const AgentApi& agent_;
};

}  // namespace hw::profiler::native

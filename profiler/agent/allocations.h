// SPDX-License-Identifier: MIT
// Counts the tensor memory of the framework's allocators, exactly and by address: of the one for
// the CPU by itself, of others as they tell it (native/cuda_allocations.h).
#pragma once

#include <atomic>
#include <cstdint>

namespace hw::profiler::native {
struct Shortage;
enum class Reclaim : int;
}  // namespace hw::profiler::native

namespace hw::profiler::agent {

/// From now on the framework's allocator gets no more than this many live bytes; 0: what there is.
void capLiveBytes(std::int64_t bytes);
/// Asked before an allocation passes that, and where there is no memory: whether some has become
/// free since. Null: there is no limit any more.
void onShortage(native::Reclaim (*makeRoom)(const native::Shortage& shortage));
/// Redirects posix_memalign and free of libc10 to counting versions. Returns the number of patched
/// slots: 0 when libc10 is not loaded or is linked in another way. Safe to call again.
int patchAllocator();
/// Puts the original entries back. Counted blocks that are freed later are no longer noticed.
void unpatchAllocator();

/// A block has been made, or is about to go. Said twice, it counts once. They take no lock but
/// their own, briefly, and allocate nothing from the framework or from malloc.
void countAllocated(std::uintptr_t address, std::int64_t bytes);
void countFreed(std::uintptr_t address);

struct AllocationFigures {
    std::int64_t live;  // bytes
    std::int64_t peak;  // highest live bytes since the last reset of the window
};

/// For allocators that are not patched: whether a block of so many bytes keeps to the limit, after
/// room has been made if need be.
bool admitBlock(std::int64_t bytes);
/// There is no memory for a block: whether some has been made free, as much as it takes if
/// possible.
bool rescueBlock(native::Shortage& shortage);

/// Of the last allocation that the limit has refused; 0: none.
std::int64_t refusedBytes();

/// Live bytes now; the op window restarts there.
std::int64_t beginOpWindow();
/// Live and highest bytes since beginOpWindow().
AllocationFigures endOpWindow();
/// The figures of the step window, which restarts at the present live bytes.
AllocationFigures restartStepWindow();
/// Requested size of a counted block, -1 for any other address.
std::int64_t blockBytes(std::uintptr_t address);
/// From now on takeFreed() tells when a block that was made unseen goes. False: it is known
/// already.
bool watchBlock(std::uintptr_t address);

struct BlockTag {
    std::int64_t bytes;     // requested size, -1 where the block is not counted
    std::uintptr_t before;  // 0: it had no tag
    bool watched;           // takeFreed() will tell
    std::int64_t steps;  // that had begun before it was allocated; -1: not known, or tagged since
};
/// A step begins; how many have, with this one.
std::int64_t countStep();
/// Names the block for takeFreed(). `uncounted`: watch it even if it was made unseen.
BlockTag tagBlock(std::uintptr_t address, std::uintptr_t tag, bool uncounted);
/// Tags (of those without: addresses) of counted and watched blocks that went since the last call,
/// in order: up to 8,192 of them, their number; -1 when there were more.
std::int64_t takeFreed(std::int64_t* tags);
/// How many takeFreed() would tell of; of use to those who ask often.
const std::atomic<std::size_t>* freedBlocks();
/// Allocations of the calling thread are not counted while paused: the shim's own tensors.
void pauseCounting(bool paused);
/// In a forked child: never take a lock that another thread held at the fork.
void disableCounting();

}  // namespace hw::profiler::agent

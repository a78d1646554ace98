// SPDX-License-Identifier: MIT
#include "profiler/agent/allocations.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <atomic>

#include "profiler/agent/got.h"
#include "profiler/agent/native/agent_api.h"

namespace hw::profiler::agent {
namespace {

// Sizes are kept here because malloc_usable_size rounds up. Open addressing with linear probing and
// backward-shift deletion, one spin lock a shard, memory straight from mmap: nothing in here may
// call the allocator that it counts.
struct Entry {
    std::uintptr_t address;
    std::int64_t bytes;
    std::uintptr_t tag;  // or, with kBirth, how many steps had begun before it was allocated
};

struct Shard {
    std::atomic_flag lock = ATOMIC_FLAG_INIT;
    Entry* entries = nullptr;
    std::size_t capacity = 0;  // a power of two
    std::size_t used = 0;
};

constexpr std::int64_t kWatched = INT64_MIN;  // bytes of a block that is not counted
constexpr std::uintptr_t kBirth = std::uintptr_t{1} << 63;
constexpr std::size_t kMostFreed = native::kMostFreed;
constexpr const char* kLibrary = "libc10.so";
constexpr std::size_t kShards = 8;  // few, to stay in the processor's caches
constexpr std::size_t kFirstEntries = 128;
Shard gShards[kShards];

std::atomic_flag gFreedLock = ATOMIC_FLAG_INIT;
std::uintptr_t gFreed[kMostFreed];
std::atomic<std::size_t> gFreedCount{0};  // more than kMostFreed: some are lost

std::atomic<bool> gEnabled{false};
std::atomic<std::int64_t> gCap{0};           // 0: none
std::atomic<std::int64_t> gRefusedBytes{0};  // bytes of the last allocation that passed it
std::atomic<native::MakeRoom> gMakeRoom{nullptr};
std::atomic<std::int64_t> gLive{0};
std::atomic<std::uintptr_t> gSteps{0};
std::atomic<std::int64_t> gOpPeak{0};
std::atomic<std::int64_t> gStepPeak{0};
thread_local bool tPaused __attribute__((tls_model("initial-exec"))) = false;

using MemalignFunction = int (*)(void**, std::size_t, std::size_t);
using FreeFunction = void (*)(void*);
MemalignFunction gMemalign = nullptr;
FreeFunction gFree = nullptr;

std::size_t hashOf(std::uintptr_t address) {
    return static_cast<std::size_t>((address >> 4) * 0x9e3779b97f4a7c15ull >> 20);
}
Shard& shardOf(std::uintptr_t address) {
    return gShards[hashOf(address) % kShards];
}
std::size_t slotOf(std::uintptr_t address, const Shard& shard) {
    return (hashOf(address) / kShards) & (shard.capacity - 1);
}

class Guard {
public:
    explicit Guard(std::atomic_flag& lock) : lock_(lock) {
        while (lock_.test_and_set(std::memory_order_acquire)) __builtin_ia32_pause();
    }
    ~Guard() { lock_.clear(std::memory_order_release); }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

private:
    std::atomic_flag& lock_;
};

std::uintptr_t birth() {
    return kBirth | gSteps.load(std::memory_order_relaxed);
}
std::uintptr_t tagOf(const Entry& entry) {
    return (entry.tag & kBirth) != 0 ? 0 : entry.tag;
}

/// The bytes that were counted at this address before: their release was not seen.
std::int64_t place(Shard& shard, Entry entry) {
    std::size_t slot = slotOf(entry.address, shard);
    while (shard.entries[slot].address != 0 && shard.entries[slot].address != entry.address)
        slot = (slot + 1) & (shard.capacity - 1);
    Entry& at = shard.entries[slot];
    const std::int64_t before = at.address != 0 && at.bytes > 0 ? at.bytes : 0;
    if (at.address == 0) ++shard.used;
    at = entry;
    return before;
}

bool grow(Shard& shard) {
    const std::size_t capacity = shard.capacity == 0 ? kFirstEntries : shard.capacity * 2;
    void* memory = mmap(nullptr, capacity * sizeof(Entry), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return false;
    Entry* old = shard.entries;
    const std::size_t oldCapacity = shard.capacity;
    shard.entries = static_cast<Entry*>(memory);
    shard.capacity = capacity;
    shard.used = 0;
    for (std::size_t i = 0; i < oldCapacity; ++i)
        if (old[i].address != 0) place(shard, old[i]);
    if (old != nullptr) munmap(old, oldCapacity * sizeof(Entry));
    return true;
}

/// As place(); -1 where there is no memory left to note it.
std::int64_t insert(const Entry& entry) {
    Shard& shard = shardOf(entry.address);
    const Guard guard(shard.lock);
    if (shard.used * 2 >= shard.capacity && !grow(shard)) return -1;
    return place(shard, entry);
}

/// Null when the block is unknown; the shard's lock is held.
Entry* entryOf(Shard& shard, std::uintptr_t address) {
    if (shard.capacity == 0) return nullptr;
    std::size_t slot = slotOf(address, shard);
    while (shard.entries[slot].address != address) {
        if (shard.entries[slot].address == 0) return nullptr;
        slot = (slot + 1) & (shard.capacity - 1);
    }
    return &shard.entries[slot];
}

/// Bytes of the block, kWatched when it is only watched, -1 when it is unknown.
std::int64_t find(std::uintptr_t address) {
    Shard& shard = shardOf(address);
    const Guard guard(shard.lock);
    const Entry* entry = entryOf(shard, address);
    return entry == nullptr ? -1 : entry->bytes;
}

/// Takes the block out; false when it is unknown.
bool remove(std::uintptr_t address, Entry& removed) {
    Shard& shard = shardOf(address);
    const Guard guard(shard.lock);
    const Entry* entry = entryOf(shard, address);
    if (entry == nullptr) return false;
    removed = *entry;
    const std::size_t mask = shard.capacity - 1;
    const auto slot = static_cast<std::size_t>(entry - shard.entries);
    // Close the hole, so that later entries of the same run stay reachable.
    std::size_t hole = slot;
    for (std::size_t next = (slot + 1) & mask; shard.entries[next].address != 0;
         next = (next + 1) & mask) {
        const std::size_t home = slotOf(shard.entries[next].address, shard);
        if (((next - home) & mask) >= ((next - hole) & mask)) {
            shard.entries[hole] = shard.entries[next];
            hole = next;
        }
    }
    shard.entries[hole].address = 0;
    --shard.used;
    return true;
}

void raisePeak(std::atomic<std::int64_t>& peak, std::int64_t value) {
    std::int64_t seen = peak.load(std::memory_order_relaxed);
    while (value > seen && !peak.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
    }
}

/// What an allocation takes of the limit before it is made, so that threads do not pass it
/// together.
enum class Claim { Free, Taken, Refused };  // Free: there is no limit for it
Claim claim(std::int64_t bytes, std::int64_t& live) {
    const std::int64_t cap = gCap.load(std::memory_order_relaxed);
    if (cap <= 0 || tPaused || !gEnabled.load(std::memory_order_relaxed)) return Claim::Free;
    live = gLive.load(std::memory_order_relaxed);
    while (live + bytes <= cap)
        if (gLive.compare_exchange_weak(live, live + bytes, std::memory_order_relaxed)) {
            live += bytes;
            return Claim::Taken;
        }
    return Claim::Refused;
}

/// It has been made, or not: `made`.
void settleClaim(std::uintptr_t address, std::int64_t bytes, std::int64_t live, bool made) {
    const std::int64_t before = made ? insert({address, bytes, birth()}) : -1;
    if (before != 0) gLive.fetch_sub(before < 0 ? bytes : before, std::memory_order_relaxed);
    if (before < 0) return;
    raisePeak(gOpPeak, live);
    raisePeak(gStepPeak, live);
}

/// What comes of it, once it has found no room.
native::Reclaim roomFor(native::Shortage& shortage, bool memory) {
    const auto makeRoom = gMakeRoom.load(std::memory_order_relaxed);
    if (makeRoom == nullptr || tPaused) return native::Reclaim::None;
    shortage.memory = memory ? 1 : 0;
    const native::Reclaim room = makeRoom(shortage);
    ++shortage.before;
    return room;
}

/// As where there is no more memory.
int refuse(std::int64_t bytes) {
    gRefusedBytes.store(bytes, std::memory_order_relaxed);
    return ENOMEM;
}

int countingMemalign(void** result, std::size_t alignment, std::size_t size) {
    const auto bytes = static_cast<std::int64_t>(size);
    std::int64_t live = 0;
    native::Shortage shortage{bytes, 0, 0};
    Claim claimed = claim(bytes, live);
    while (claimed == Claim::Refused) {
        const native::Reclaim room = roomFor(shortage, false);
        if (room == native::Reclaim::None) return refuse(bytes);
        claimed = room == native::Reclaim::Above ? Claim::Free : claim(bytes, live);
    }
    shortage.before = 0;
    int status = gMemalign(result, alignment, size);
    while (status == ENOMEM && roomFor(shortage, true) == native::Reclaim::Made)
        status = gMemalign(result, alignment, size);
    const int saved = errno;
    const auto address = reinterpret_cast<std::uintptr_t>(*result);
    if (claimed == Claim::Taken)
        settleClaim(address, bytes, live, status == 0);
    else if (status == 0)
        countAllocated(address, bytes);
    errno = saved;
    return status;
}

void noteFreed(std::uintptr_t tag) {
    if (gFreedCount.load(std::memory_order_relaxed) > kMostFreed) return;  // they are not asked for
    const Guard guard(gFreedLock);
    const std::size_t count = gFreedCount.load(std::memory_order_relaxed);
    if (count < kMostFreed) gFreed[count] = tag;
    if (count <= kMostFreed) gFreedCount.store(count + 1, std::memory_order_relaxed);
}

void countingFree(void* block) {
    // The entry goes before the block does: another thread may get the same address at once.
    if (block != nullptr) countFreed(reinterpret_cast<std::uintptr_t>(block));
    gFree(block);
}

// Where the program itself is linked to take a function's address, that is its entry in the
// program's linkage table for everybody, while calls are bound to the function behind it.
int redirect(const char* symbol, void* seen, void* to) {
    void* libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
    void* const from[] = {seen, dlsym(RTLD_NEXT, symbol),
                          libc != nullptr ? dlsym(libc, symbol) : seen};
    return patchSlots({kLibrary}, symbol, from, to);
}

// What was counted in an earlier recording may have gone unseen since.
void forgetBlocks() {
    for (Shard& shard : gShards) {
        const Guard guard(shard.lock);
        if (shard.entries != nullptr) munmap(shard.entries, shard.capacity * sizeof(Entry));
        shard.entries = nullptr;
        shard.capacity = shard.used = 0;
    }
    {
        const Guard guard(gFreedLock);
        gFreedCount = 0;
    }
    gLive.store(0);
    gOpPeak.store(0);
    gStepPeak.store(0);
}

}  // namespace

void capLiveBytes(std::int64_t bytes) {
    gCap.store(bytes);
    gRefusedBytes.store(0);
}

void onShortage(native::MakeRoom makeRoom) {
    gMakeRoom.store(makeRoom);
    if (makeRoom == nullptr) gCap.store(0);
}

void countAllocated(std::uintptr_t address, std::int64_t bytes) {
    if (tPaused || !gEnabled.load(std::memory_order_relaxed)) return;
    const std::int64_t before = insert({address, bytes, birth()});
    if (before < 0) return;
    const std::int64_t live =
        gLive.fetch_add(bytes - before, std::memory_order_relaxed) + bytes - before;
    raisePeak(gOpPeak, live);
    raisePeak(gStepPeak, live);
}

void countFreed(std::uintptr_t address) {
    Entry entry;
    if (!gEnabled.load(std::memory_order_relaxed) || !remove(address, entry)) return;
    if (entry.bytes > 0) gLive.fetch_sub(entry.bytes, std::memory_order_relaxed);
    noteFreed(tagOf(entry) != 0 ? tagOf(entry) : entry.address);
}

bool admitBlock(std::int64_t bytes) {
    native::Shortage shortage{bytes, 0, 0};
    while (true) {
        const std::int64_t cap = gCap.load(std::memory_order_relaxed);
        if (cap <= 0 || tPaused || !gEnabled.load(std::memory_order_relaxed) ||
            gLive.load(std::memory_order_relaxed) + bytes <= cap)
            return true;
        const native::Reclaim room = roomFor(shortage, false);
        if (room == native::Reclaim::None) refuse(bytes);
        if (room != native::Reclaim::Made) return room == native::Reclaim::Above;
    }
}

bool rescueBlock(native::Shortage& shortage) {
    const std::int64_t live = gLive.load(std::memory_order_relaxed);
    bool made = false;
    while (roomFor(shortage, true) == native::Reclaim::Made) {
        made = true;
        if (live - gLive.load(std::memory_order_relaxed) >= shortage.bytes) break;
    }
    return made;
}

int patchAllocator() {
    forgetBlocks();
    if (gMemalign == nullptr) gMemalign = &posix_memalign;
    if (gFree == nullptr) gFree = &free;
    gEnabled.store(true);
    const int allocating = redirect("posix_memalign", reinterpret_cast<void*>(&posix_memalign),
                                    reinterpret_cast<void*>(&countingMemalign));
    const int freeing =
        redirect("free", reinterpret_cast<void*>(&free), reinterpret_cast<void*>(&countingFree));
    if (allocating > 0 && freeing > 0) return allocating + freeing;
    unpatchAllocator();
    return 0;
}

void unpatchAllocator() {
    void* const memalign[] = {reinterpret_cast<void*>(&countingMemalign)};
    void* const release[] = {reinterpret_cast<void*>(&countingFree)};
    patchSlots({kLibrary}, "posix_memalign", memalign, reinterpret_cast<void*>(&posix_memalign));
    patchSlots({kLibrary}, "free", release, reinterpret_cast<void*>(&free));
    gEnabled.store(false);
}

std::int64_t beginOpWindow() {
    const std::int64_t live = gLive.load(std::memory_order_relaxed);
    gOpPeak.store(live, std::memory_order_relaxed);
    return live;
}

AllocationFigures endOpWindow() {
    return {gLive.load(std::memory_order_relaxed), gOpPeak.load(std::memory_order_relaxed)};
}

AllocationFigures restartStepWindow() {
    const std::int64_t live = gLive.load(std::memory_order_relaxed);
    return {live, gStepPeak.exchange(live, std::memory_order_relaxed)};
}

std::int64_t blockBytes(std::uintptr_t address) {
    const std::int64_t bytes = gEnabled.load(std::memory_order_relaxed) ? find(address) : -1;
    return bytes == kWatched ? -1 : bytes;
}

bool watchBlock(std::uintptr_t address) {
    if (!gEnabled.load(std::memory_order_relaxed) || find(address) != -1) return false;
    return insert({address, kWatched, 0}) >= 0;
}

std::int64_t countStep() {
    return static_cast<std::int64_t>(gSteps.fetch_add(1) + 1);
}

BlockTag tagBlock(std::uintptr_t address, std::uintptr_t tag, bool uncounted) {
    if (!gEnabled.load(std::memory_order_relaxed)) return {-1, 0, false, -1};
    {
        Shard& shard = shardOf(address);
        const Guard guard(shard.lock);
        if (Entry* entry = entryOf(shard, address); entry != nullptr) {
            const bool born = (entry->tag & kBirth) != 0;
            const BlockTag result{entry->bytes == kWatched ? -1 : entry->bytes, tagOf(*entry), true,
                                  born ? static_cast<std::int64_t>(entry->tag ^ kBirth) : -1};
            entry->tag = tag;
            return result;
        }
    }
    return {-1, 0, uncounted && insert({address, kWatched, tag}) >= 0, -1};
}

std::int64_t takeFreed(std::int64_t* tags) {
    const Guard guard(gFreedLock);
    const std::size_t count = gFreedCount;
    gFreedCount = 0;
    if (count > kMostFreed) return -1;
    for (std::size_t i = 0; i < count; ++i) tags[i] = static_cast<std::int64_t>(gFreed[i]);
    return static_cast<std::int64_t>(count);
}

const std::atomic<std::size_t>* freedBlocks() {
    return &gFreedCount;
}

void pauseCounting(bool paused) {
    tPaused = paused;
}

std::int64_t refusedBytes() {
    return gRefusedBytes.load(std::memory_order_relaxed);
}

void disableCounting() {
    gEnabled.store(false);
}

}  // namespace hw::profiler::agent

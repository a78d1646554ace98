// SPDX-License-Identifier: MIT
// The storages of the plan as they are in the program at this moment.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "call.h"
#include "flat_map.h"
#include "host_memory.h"
#include "lent_memory.h"
#include "op_lock.h"
#include "verifier.h"

namespace hw::live::runtime {

/// The version of a storage that holds signs in the place of its elements.
inline constexpr std::int32_t kSigns = -1;

/// What has taken the place of a storage's bytes.
struct Encoded {
    Encoding how;
    c10::DataPtr form;
    std::size_t plainBytes = 0;
    c10::Allocator* allocator = nullptr;
    std::int32_t version = 0;  // of the storage
};

/// One storage of the plan. The weak reference keeps its address from being used again, so that the
/// address stands for the storage; nothing else of it is kept alive.
struct Slot {
    c10::weak_intrusive_ptr<c10::StorageImpl> weak{StoragePointer()};
    StoragePointer held;               // the program may let go of it, the plan does not
    std::shared_ptr<LentMemory> lent;  // the same of memory that is the program's
    std::int32_t version = 0;          // of its bytes, where it has any
    std::int32_t written = 0;          // the version that the program has brought it to
    bool dropped = false;
    bool stays = false;    // until the step ends, whatever a plan says: nothing could make it again
    bool unread = false;   // made by an op that only fills: other code may be filling it
    bool exposed = false;  // code past the dispatcher may write its bytes
    bool uncompared = false;  // some of its bytes may be others when they are recomputed
    bool varied = false;      // they have been recomputed since
    Checksum sum;             // of the bytes that were dropped
    Checksum born;            // of what an op has made that only fills, until it is read
    std::unique_ptr<Encoded> encoded;
    std::unique_ptr<HostCopy> copy;  // while the bytes are there, or in their place

    /// The program may read it, and its bytes are not there, or they are an earlier version of it.
    bool away() const {
        return weak.use_count() > (held ? 1U : 0U) && (dropped || version != written);
    }
    c10::StorageImpl* key() const { return weak._unsafe_get_target(); }
    bool alive() const { return held || !weak.expired() || (lent && lent->copy()); }
    bool present() const { return key() != nullptr && !dropped && alive(); }
    StoragePointer lock() const {
        if (held) return held;
        StoragePointer there = weak.lock();
        return there || !lent ? there : lent->copy();
    }
    bool isHeld() const { return held || lent; }
    /// The program may let go of it, and it can still be read.
    void hold() {
        const StoragePointer there = held || lent ? StoragePointer() : weak.lock();
        if (there && !(lent = LentMemory::of(*there))) held = there;
    }
};

/// Its bytes are the framework's to give back, and counted.
bool evictable(const c10::StorageImpl& impl);

class Slots {
public:
    /// Called, on any thread, with a storage that was dropped when it has bytes again or is gone.
    using Back = void (*)(void* impl);
    /// `lock`: that under which all is called.
    explicit Slots(OpLock& lock, Back back = nullptr) : lock_(lock), back_(back) {}

    /// What is dropped leaves a checksum, and what comes back is compared.
    void verifyWith(Verifier* verifier) { verifier_ = verifier; }
    void release(std::size_t storage) { letGo(slots_[storage]); }
    /// A storage that came back with other bytes since the last time; none: there is none.
    std::optional<std::size_t> takeMismatch() { return std::exchange(mismatch_, std::nullopt); }
    /// What a difference comes from, most likely, where it is seen later.
    MismatchKind likelyKind(const Call& call, Items<Input> inputs) const;

    void reset(std::size_t storages);
    /// There are more of them.
    void grow(std::size_t storages) { slots_.resize(storages); }
    Slot& operator[](std::size_t storage) { return slots_[storage]; }
    const Slot& operator[](std::size_t storage) const { return slots_[storage]; }
    std::size_t size() const { return slots_.size(); }

    /// The storage is this one from now on.
    void bind(std::size_t storage, c10::StorageImpl* impl);
    /// The same of one that has just been made. False: it is a storage of the plan already.
    [[gnu::hot]] bool bindNew(std::size_t storage, c10::StorageImpl* impl);
    void unbind(std::size_t storage);
    /// Where nothing is left of the storage, its address may be used again: the framework makes the
    /// next one in memory that the processor still knows.
    [[gnu::hot]] void forgetDead(std::size_t storage);
    /// Its bytes go; false where they are not the framework's to give back.
    bool drop(std::size_t storage);
    /// An encoded form takes the place of its bytes; false where it cannot, and nothing has
    /// changed.
    bool encode(std::size_t storage, const Encoding& how);
    /// The bytes come back from the encoded form, where there is one: or signs, as kSigns.
    void decode(std::size_t storage);
    /// A copy of its bytes to host memory begins.
    void offload(std::size_t storage);
    /// The bytes of one that is there go, and the copy stands for them; false where it cannot, and
    /// nothing has changed.
    bool leave(std::size_t storage);
    void forgetCopy(std::size_t storage) { slots_[storage].copy.reset(); }
    /// The bytes come back from the copy, where it stands for them; false where they cannot be
    /// read.
    bool prefetch(std::size_t storage);
    /// The bytes of that version from what stands for them, as a storage of their own; null where
    /// they cannot be had from it.
    StoragePointer decoded(std::size_t storage, std::int32_t version) const;
    /// A copy of its bytes has been made: it takes them over, or becomes the copy where the program
    /// has let go of it.
    void fill(std::size_t storage, StoragePointer made, std::int32_t version);
    /// What comes next from a recomputation may be other bytes, and is not compared.
    void vary(std::size_t storage) {
        slots_[storage].sum = Checksum();
        slots_[storage].uncompared = slots_[storage].varied = true;
    }
    /// A recomputation has written it.
    void advance(std::size_t storage);
    /// Which storage of the plan it is; -1: none.
    std::int64_t find(c10::StorageImpl* impl);
    /// Which storage of the plan one that is away is; -1: none.
    std::int64_t awayAt(c10::StorageImpl* impl) const;
    std::vector<std::size_t> away() const;
    /// The storages have other numbers from now on.
    void rename(const std::vector<std::int64_t>& to, std::size_t storages);

private:
    /// The plan does not hold it any more.
    void letGo(Slot& slot);
    void takeBytes(std::size_t storage, c10::StorageImpl& impl);
    static StoragePointer decode(const Encoded& encoded);
    void note(std::size_t storage);  // whether it is away
    void compare(std::size_t storage);
    void index();

    OpLock& lock_;
    Back back_;
    Verifier* verifier_ = nullptr;  // null: nothing is compared
    std::optional<std::size_t> mismatch_;
    std::vector<Slot> slots_;
    // Where storages are bound, from the first time on that somebody asks: most steps pass without.
    profiler::native::FlatMap<c10::StorageImpl, std::size_t> bound_;
    bool indexed_ = false;
    profiler::native::FlatMap<c10::StorageImpl, std::size_t> away_;
};

}  // namespace hw::live::runtime

// SPDX-License-Identifier: MIT
// Storages whose bytes code that calls no op may write at any time: their address went out (numpy,
// dlpack, an extension), or their memory is not the framework's (from_numpy, shared memory).
//
// What an op has read there may not be there any more when the op is to run again. As long as such
// bytes have never been seen to change between an op that reads them and the step's end they are
// trusted; until that is known, and for good once they have changed, ops run again on copies or
// not at all.
#pragma once

#include <unordered_map>
#include <vector>

#include "call.h"
#include "flat_map.h"
#include "lent_memory.h"
#include "unseen_writes.h"

namespace hw::live::runtime {

using profiler::native::isForeign;
using profiler::native::isMapped;
using profiler::native::isParameter;

/// An op that reads so many times what it makes does not run again: all that it reads would be
/// looked at.
inline constexpr std::int64_t kMostRead = 8;
/// A copy of so many bytes is always worth making.
inline constexpr std::int64_t kSmallCopy = 16384;

/// Storages that are known for as long as they are there.
class StorageSet {
public:
    void add(c10::StorageImpl* storage);
    bool has(const c10::StorageImpl* storage) const { return known_.find(storage) != nullptr; }
    void forgetGone();

private:
    // The weak references keep the addresses from being used again.
    profiler::native::FlatMap<const c10::StorageImpl, std::size_t> known_;
    std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>> storages_;
    std::size_t room_ = 64;  // before those that are gone are looked for
};

class Exposures {
public:
    explicit Exposures(const Verifier& verifier) : verifier_(verifier) {}

    /// Code that calls no op knows the storage's address from here on.
    void expose(c10::StorageImpl* storage);
    bool isExposed(const c10::StorageImpl* storage) const;
    /// An op has read the part of a storage of which `source` has the sum.
    void read(c10::StorageImpl* storage, const Call::Source& source);

    /// In this step.
    bool anyRead() const { return !seen_.empty(); }
    /// An op, or what announces it, has written the storage: what was read before proves nothing.
    void forgetReads(const c10::StorageImpl* storage);

    /// `recorded`: recordings see whether such bytes change.
    bool trusted(bool recorded) const {
        return !changed_ && ((told_ && recorded) || clean_ >= kCleanSteps);
    }
    /// They have been seen to change.
    bool changed() const { return changed_; }
    /// A recording has seen that they do not change.
    void trust() { told_ = true; }
    void distrust() { changed_ = true; }
    void endStep();

    /// Such running statistics are updated by ops that do not say so.
    void noteStatistics(c10::StorageImpl* storage) { statistics_.add(storage); }
    bool isStatistics(const c10::StorageImpl* storage) const { return statistics_.has(storage); }

    /// A copy of the part of a storage, in memory of the framework's. Throws where there is none.
    static StoragePointer copyOf(const c10::StorageImpl& storage, const Call::Source& part);
    /// What a tensor, input k of an op, looks at, with the sum of what is there.
    Call::Source sourceOf(const c10::TensorImpl& tensor, std::size_t k) const;
    /// Whether a tensor's bytes may change by no op, and lie where the host can read them.
    bool mayChange(const c10::TensorImpl& tensor) const;
    /// The same of a parameter, which mostly only the optimizer changes: it is read again, and
    /// looked at before that.
    bool isLookedAt(const c10::TensorImpl& tensor) const;
    /// Those on a GPU are taken to stay until such bytes have been seen to change. Whether one of
    /// these tensors then may.
    bool changeOnGpu(const Tensors& tensors) const;

private:
    static constexpr int kCleanSteps = 2;
    static constexpr std::size_t kMostSeen = 4096;  // reads of a step

    struct Seen {
        c10::weak_intrusive_ptr<c10::StorageImpl> storage;
        std::shared_ptr<LentMemory> lent;
        std::int64_t from, bytes;
        Checksum sum;
    };

    bool isReachable(const c10::StorageImpl& storage) const;

    const Verifier& verifier_;
    StorageSet exposed_, statistics_;
    std::vector<Seen> seen_;
    std::unordered_map<const char*, Checksum> sums_;  // of what was read at an address, last
    bool told_ = false, changed_ = false;
    int clean_ = 0;  // steps in which some were read and none has changed
};

}  // namespace hw::live::runtime

// SPDX-License-Identifier: MIT
// Which storages and tensors there are, their versions, and when storages go: tensors.py in C++.
//
// A storage is known by the address of its StorageImpl, which stays its own as long as we hold a
// weak reference. Nothing here holds a strong one: reference counts decide in autograd whether a
// gradient is cloned or stolen, so a held output would change the run that is being watched.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "flat_map.h"
#include "frame.h"

namespace hw::profiler::native {

using wire::Category;
using wire::Phase;

/// Type, sizes and strides of a tensor as one number: two that differ in any of them have the same
/// one in 1 of 2^64 cases.
std::uint64_t formOf(const c10::TensorImpl& tensor);
/// The same of how it looks at its storage, the offset included.
std::uint64_t viewOf(const at::Tensor& tensor);

/// One way to look at a storage, and the tensors that look at it so.
struct View {
    std::int64_t id = -1;
    std::uint64_t form = 0;
    c10::SmallVector<c10::weak_intrusive_ptr<c10::TensorImpl>, 1> holders;
};

struct Storage {
    std::int64_t id = 0;
    c10::weak_intrusive_ptr<c10::StorageImpl> weak{c10::intrusive_ptr<c10::StorageImpl>()};
    std::int64_t bytes = 0;
    std::int64_t epoch = 0;
    std::int64_t op = -1;
    std::int64_t layer = -1;
    std::int64_t stored = -1;  // epoch in which its contents were sent
    std::uintptr_t address = 0;
    std::int32_t version = 0;
    Phase phase = Phase::Unknown;
    Category category = Category::Unknown;
    bool counted = false;
    bool old = false;  // its memory was there when the step began
    c10::SmallVector<View, 1> views;

    c10::StorageImpl* key() const { return weak._unsafe_get_target(); }
};

/// A tensor that somebody holds for longer than a step.
struct Owned {
    c10::weak_intrusive_ptr<c10::TensorImpl> weak;
    Category category;
    std::int64_t layer;
};

/// Where an op runs.
struct Place {
    std::int64_t op = -1;
    Phase phase = Phase::Unknown;
    std::int64_t layer = -1;
};

class Registry {
public:
    Registry(const AgentApi& agent, Stream& stream, bool contents)
        : agent_(agent), stream_(stream), contents_(contents) {}

    /// Forgets everything.
    void clear();
    /// Notes the storages that have gone since the last call.
    void poll();
    /// The same, by looking at every storage.
    void sweep();
    /// The agent counts blocks again, and knows none from before.
    void recount();

    /// What was made out of sight, or anything; null when the tensor has no plain storage.
    Storage* constant(const at::Tensor& tensor, std::int64_t layer, std::int64_t& id);
    /// An output of an op; `fresh`: the op made the storage.
    Storage* result(const at::Tensor& tensor, const Place& place, std::int64_t seq,
                    std::int64_t& id, bool& fresh);
    Storage* lookup(const at::Tensor& tensor);
    /// Bytes of a constant of this step, before the first op that uses it.
    void storeContents(Storage& storage, const at::Tensor& tensor);

    void setCategory(Storage& storage, Category category, std::int64_t layer);
    /// Where the tensor's storage is known and has no better category yet.
    void categorize(const at::Tensor& tensor, Category category, std::int64_t layer);
    /// Whatever storage the tensor lies on is of this category, a parameter's gradient one.
    void own(const at::Tensor& tensor, Category category, std::int64_t layer);
    /// No weak reference to the tensor is left; it is known again with its next op, or by own().
    void letGo(const c10::TensorImpl* tensor);
    /// Gives their categories to what own() has named; how many of them have gone.
    std::int64_t categorizeOwned();
    /// `onlyUsed`: of parameters that this step has used; other threads may set those of others.
    void categorizeGradients(bool onlyUsed);
    /// What forward left alive is what it saved for now.
    void saveActivations();
    /// Of a process that uses a GPU: what is alive beyond the storages that are known (workspaces
    /// that libraries keep from op to op) is told as one more, at `seq`. live: counted bytes.
    void tellUnknown(std::int64_t live, std::int64_t seq);
    /// The tensors that are alive, at least one a storage.
    std::vector<std::int64_t> finals() const;

    std::int64_t nextSeq() { return seq_++; }
    std::int64_t seq() const { return seq_; }
    /// The step has begun at `seq`: what is seen for the first time and was there before comes from
    /// then. -1: where the step begins is not known yet.
    void stepBegan(std::int64_t seq) { begun_ = seq; }
    void nextEpoch() {
        steps_ = agent_.stepBegins();
        begun_ = -1;
        ++epoch_;
        opPeak_ = 0;
    }
    std::int64_t epoch() const { return epoch_; }
    std::int64_t uncounted() const { return uncounted_; }
    std::int64_t opPeak() const { return opPeak_; }
    void raiseOpPeak(std::int64_t bytes) { opPeak_ = std::max(opPeak_, bytes); }

private:
    using Key = c10::StorageImpl*;

    void takeFreed();
    /// Null where it is not known.
    Storage* known(Key key) const {
        const auto* const found = live_.find(key);
        return found != nullptr ? found->get() : nullptr;
    }
    Storage& add(Key key, const at::Tensor& tensor, const Place& place, std::int64_t seq);
    at::Tensor hostCopy(const at::Tensor& tensor, std::int64_t bytes);
    void watch(Storage& storage);
    void gone(Storage& storage);  // or its bytes
    std::vector<Storage*> expired();
    void resized(Storage& storage);
    void indexOwned();
    std::int64_t tensorId(Storage& storage, const at::Tensor& tensor, std::int64_t op);

    const AgentApi& agent_;
    Stream& stream_;
    bool contents_;
    FlatMap<c10::StorageImpl, std::unique_ptr<Storage>> live_;
    std::vector<std::unique_ptr<Storage>> spare_;  // to be used again
    std::unordered_set<Key> unwatched_;            // no release of a block tells that they go
    std::vector<Owned> owned_;
    std::unordered_map<c10::TensorImpl*, std::size_t> ownedAt_;  // where in owned_
    std::int64_t epoch_ = 0;   // goes up with every possible start of a step
    std::int64_t steps_ = 0;   // as the agent counts them, like epochs
    std::int64_t begun_ = -1;  // where the step began; -1: not known
    std::int64_t seq_ = 0;
    std::int64_t storages_ = 0;
    std::int64_t toldUnknown_ = 0;  // bytes
    std::int64_t tensors_ = 0;
    std::int64_t uncounted_ = 0;  // live bytes that the framework's allocator did not make
    std::int64_t opPeak_ = 0;     // highest counted + uncounted bytes during an op of this step
};

/// A meta tensor has no bytes, and how many it would have may be a symbol.
inline bool isMeta(const at::Tensor& tensor) {
    const auto* const storage =
        tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
    return storage != nullptr && storage->device_type() == c10::DeviceType::Meta;
}

/// Null for what has no plain storage.
inline c10::StorageImpl* storageOf(const at::Tensor& tensor) {
    const c10::TensorImpl* const impl = tensor.unsafeGetTensorImpl();
    c10::StorageImpl* const storage = impl->unsafe_storage().unsafeGetStorageImpl();
    if (storage == nullptr || impl->is_nested()) return nullptr;
    // A wrapper around other tensors has no memory, and may answer in Python what its layout is.
    const auto& data = static_cast<const c10::StorageImpl*>(storage)->data_ptr();
    if (data.get() == nullptr && impl->key_set().has(c10::DispatchKey::Python)) return nullptr;
    if (isMeta(tensor)) return nullptr;
    return impl->layout() == at::kStrided ? storage : nullptr;
}

/// "float32" and the like; null for a type that Python has no name for.
const char* dtypeName(at::ScalarType type);
/// The same of a tensor's elements; "unknown" where there is none.
const char* dtypeName(const c10::TensorImpl& tensor);

}  // namespace hw::profiler::native

// SPDX-License-Identifier: MIT
#include "exposures.h"

#include <algorithm>
#include <cstring>

#include "guards.h"

namespace hw::live::runtime {
namespace {

c10::weak_intrusive_ptr<c10::StorageImpl> weakTo(c10::StorageImpl* storage) {
    c10::raw::weak_intrusive_ptr::incref(storage);
    return c10::weak_intrusive_ptr<c10::StorageImpl>::reclaim(storage);
}

}  // namespace

void Exposures::expose(c10::StorageImpl* storage) {
    if (Guards::on(GuardKind::Exposures)) exposed_.add(storage);
}

bool Exposures::isExposed(const c10::StorageImpl* storage) const {
    return exposed_.has(storage);
}

void Exposures::read(c10::StorageImpl* storage, const Call::Source& source) {
    if (seen_.size() == kMostSeen) return;
    const auto [last, fresh] = sums_.try_emplace(bytesOf(*storage) + source.from, source.sum);
    changed_ =
        changed_ || (!fresh && last->second.value != source.sum.value && isForeign(*storage));
    last->second = source.sum;
    seen_.push_back(
        {weakTo(storage), LentMemory::of(*storage), source.from, source.bytes, source.sum});
}

void Exposures::forgetReads(const c10::StorageImpl* storage) {
    if (seen_.empty()) return;
    sums_.clear();
    seen_.erase(std::remove_if(
                    seen_.begin(), seen_.end(),
                    [&](const Seen& seen) { return seen.storage._unsafe_get_target() == storage; }),
                seen_.end());
}

void Exposures::endStep() {
    bool unknown = false;
    for (const Seen& seen : seen_) {
        StoragePointer storage = seen.storage.lock();
        if (!storage && seen.lent) storage = seen.lent->copy();
        const char* const bytes = storage ? bytesOf(*storage) : nullptr;
        if (bytes == nullptr || !isMapped(bytes + seen.from, seen.bytes))
            unknown = true;
        else
            changed_ = changed_ || !verifier_.isSame(seen.sum, bytes + seen.from, seen.bytes);
    }
    if (!seen_.empty() && !unknown) ++clean_;
    seen_.clear();
    sums_.clear();
    exposed_.forgetGone();
    statistics_.forgetGone();
}

void StorageSet::add(c10::StorageImpl* storage) {
    if (has(storage)) return;
    if (storages_.size() >= room_) {
        forgetGone();
        room_ = 64 + 2 * storages_.size();
    }
    storages_.push_back(weakTo(storage));
    known_.set(storage, storages_.size() - 1);
}

void StorageSet::forgetGone() {
    const bool gone = std::any_of(storages_.begin(), storages_.end(),
                                  [](const auto& weak) { return weak.expired(); });
    if (!gone) return;
    storages_.erase(std::remove_if(storages_.begin(), storages_.end(),
                                   [](const auto& weak) { return weak.expired(); }),
                    storages_.end());
    known_.clear();
    for (std::size_t i = 0; i < storages_.size(); ++i)
        known_.set(storages_[i]._unsafe_get_target(), i);
}

StoragePointer Exposures::copyOf(const c10::StorageImpl& storage, const Call::Source& part) {
    c10::Allocator* const allocator = c10::GetAllocator(c10::DeviceType::CPU);
    const auto bytes = static_cast<std::size_t>(part.bytes);
    auto copy = c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), bytes,
                                                      allocator->allocate(bytes), allocator,
                                                      /*resizable=*/false);
    if (bytes > 0)
        std::memcpy(const_cast<char*>(bytesOf(*copy)), bytesOf(storage) + part.from, bytes);
    return copy;
}

Call::Source Exposures::sourceOf(const c10::TensorImpl& tensor, std::size_t k) const {
    const profiler::native::Part part = profiler::native::partOf(tensor);
    Call::Source source;
    source.input = static_cast<std::int64_t>(k);
    source.from = part.from;
    source.bytes = part.bytes;
    source.sum = verifier_.whole(bytesOf(*plainStorage(tensor)) + source.from, source.bytes);
    return source;
}

/// Code that calls no op can write its bytes, and the host can read them.
bool Exposures::isReachable(const c10::StorageImpl& storage) const {
    return Guards::on(GuardKind::Exposures) && storage.device_type() == c10::DeviceType::CPU &&
           bytesOf(storage) != nullptr && (isForeign(storage) || isExposed(&storage));
}

bool Exposures::mayChange(const c10::TensorImpl& tensor) const {
    return isReachable(*plainStorage(tensor)) && !isParameter(tensor);
}

bool Exposures::isLookedAt(const c10::TensorImpl& tensor) const {
    return isParameter(tensor) && isReachable(*plainStorage(tensor));
}

bool Exposures::changeOnGpu(const Tensors& tensors) const {
    return changed_ && std::any_of(tensors.begin(), tensors.end(), [&](const auto* tensor) {
               const c10::StorageImpl* const storage = plainStorage(*tensor);
               return storage->device_type() == c10::DeviceType::CUDA && isExposed(storage) &&
                      !isParameter(*tensor);
           });
}

}  // namespace hw::live::runtime

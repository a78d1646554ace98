// SPDX-License-Identifier: MIT
#include "slots.h"

#include <algorithm>

namespace hw::executor::live {

void Slots::reset(std::size_t storages) {
    slots_.clear();
    slots_.resize(storages);
    dropped_.clear();
}

void Slots::bind(std::size_t storage, c10::StorageImpl* impl) {
    c10::raw::weak_intrusive_ptr::incref(impl);
    slots_[storage].weak = c10::weak_intrusive_ptr<c10::StorageImpl>::reclaim(impl);
}

bool Slots::drop(std::size_t storage) {
    Slot& slot = slots_[storage];
    StoragePointer impl = slot.weak.lock();
    slot.held.reset();
    if (!impl || impl.use_count() == 1) return true;  // ours was the last reference
    const c10::DataPtr& data = static_cast<const c10::StorageImpl&>(*impl).data_ptr();
    if (data.get() == nullptr) return impl->nbytes() == 0;
    if (impl->allocator() == nullptr || data.get_deleter() != impl->allocator()->raw_deleter())
        return false;
    // The number of bytes stays: views that are made meanwhile are within their bounds.
    impl->set_data_ptr_noswap(c10::DataPtr(nullptr, impl->device()));
    slot.dropped = true;
    dropped_[impl.get()] = storage;
    return true;
}

void Slots::fill(std::size_t storage, StoragePointer made, std::int32_t version) {
    Slot& slot = slots_[storage];
    StoragePointer impl = slot.lock();
    if (impl && slot.dropped) {
        c10::DataPtr none(nullptr, impl->device());
        impl->set_data_ptr_noswap(made->set_data_ptr(std::move(none)));
        dropped_.erase(impl.get());
    } else if (!impl) {
        if (slot.key() != nullptr) dropped_.erase(slot.key());
        bind(storage, made.get());
        slot.held = std::move(made);
    }
    slot.dropped = false;
    slot.version = version;
}

std::int64_t Slots::droppedAt(c10::StorageImpl* impl) const {
    const auto found = dropped_.find(impl);
    return found == dropped_.end() ? -1 : static_cast<std::int64_t>(found->second);
}

std::vector<std::size_t> Slots::dropped() const {
    std::vector<std::size_t> list;
    for (const auto& [impl, storage] : dropped_)
        if (slots_[storage].alive()) list.push_back(storage);
    std::sort(list.begin(), list.end());
    return list;
}

void Slots::rename(const std::vector<std::int64_t>& to, std::size_t storages) {
    std::vector<Slot> renamed(storages);
    for (std::size_t i = 0; i < to.size(); ++i)
        if (to[i] >= 0) renamed[static_cast<std::size_t>(to[i])] = std::move(slots_[i]);
    slots_ = std::move(renamed);
    dropped_.clear();
}

}  // namespace hw::executor::live

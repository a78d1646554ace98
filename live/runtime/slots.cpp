// SPDX-License-Identifier: MIT
#include "slots.h"

#include <algorithm>

#include "cuda_allocations.h"
#include "encoding.h"
#include "unseen_writes.h"

namespace hw::live::runtime {

void Slots::reset(std::size_t storages) {
    for (Slot& slot : slots_) letGo(slot);
    slots_.clear();
    slots_.resize(storages);
    bound_.clear();
    indexed_ = false;
    away_.clear();
}

void Slots::letGo(Slot& slot) {
    slot.lent.reset();
    if (!slot.held) return;
    if (profiler::native::isForeign(*slot.held)) lock_.bury(std::move(slot.held));
    slot.held.reset();
}

void Slots::bind(std::size_t storage, c10::StorageImpl* impl) {
    if (indexed_ && slots_[storage].key() != nullptr) bound_.erase(slots_[storage].key());
    c10::raw::weak_intrusive_ptr::incref(impl);
    slots_[storage].weak = c10::weak_intrusive_ptr<c10::StorageImpl>::reclaim(impl);
    if (indexed_) bound_.set(impl, storage);
}

/// Only the storage itself has a weak reference to one that no slot has bound.
bool Slots::bindNew(std::size_t storage, c10::StorageImpl* impl) {
    if (slots_[storage].key() == impl) return false;
    c10::raw::weak_intrusive_ptr::incref(impl);
    auto weak = c10::weak_intrusive_ptr<c10::StorageImpl>::reclaim(impl);
    constexpr std::uint32_t kAlone = 2;  // the storage's own, and this one
    if (weak.weak_use_count() > kAlone && find(impl) >= 0) return false;
    if (slots_[storage].key() != nullptr) unbind(storage);
    slots_[storage].weak = std::move(weak);
    if (indexed_) bound_.set(impl, storage);
    return true;
}

void Slots::unbind(std::size_t storage) {
    if (c10::StorageImpl* const impl = slots_[storage].key(); impl != nullptr) {
        if (indexed_) bound_.erase(impl);
        away_.erase(impl);
    }
    letGo(slots_[storage]);
    slots_[storage] = Slot();
}

void Slots::forgetDead(std::size_t storage) {
    Slot& slot = slots_[storage];
    c10::StorageImpl* const impl = slot.key();
    if (impl == nullptr || slot.held || slot.lent || slot.encoded || slot.copy ||
        !slot.weak.expired())
        return;
    if (indexed_) bound_.erase(impl);
    if (slot.dropped || slot.version != slot.written) away_.erase(impl);
    slot.weak.reset();
}

bool evictable(const c10::StorageImpl& impl) {
    const bool ours =
        impl.device_type() == c10::DeviceType::CPU ||
        (impl.device_type() == c10::DeviceType::CUDA && profiler::native::cudaBlocksCounted());
    return ours && impl.nbytes() > 0 && impl.allocator() != nullptr &&
           impl.data_ptr().get() != nullptr &&
           impl.data_ptr().get_deleter() == impl.allocator()->raw_deleter();
}

bool Slots::drop(std::size_t storage) {
    Slot& slot = slots_[storage];
    slot.encoded.reset();
    slot.copy.reset();
    if (slot.dropped) {
        letGo(slot);
        return true;
    }
    StoragePointer impl = slot.weak.lock();
    letGo(slot);
    if (!impl || impl.use_count() == 1) return true;  // ours was the last reference
    const c10::DataPtr& data = static_cast<const c10::StorageImpl&>(*impl).data_ptr();
    if (data.get() == nullptr) return impl->nbytes() == 0;
    if (impl->allocator() == nullptr || data.get_deleter() != impl->allocator()->raw_deleter())
        return false;
    if (verifier_ != nullptr && !slot.uncompared && slot.version == slot.written)
        slot.sum = verifier_->of(*impl, slot.written);
    takeBytes(storage, *impl);
    return true;
}

/// The number of bytes stays: views that are made meanwhile are within their bounds.
void Slots::takeBytes(std::size_t storage, c10::StorageImpl& impl) {
    impl.set_data_ptr_noswap(back_ == nullptr ? c10::DataPtr(nullptr, impl.device())
                                              : c10::DataPtr(nullptr, &impl, back_, impl.device()));
    slots_[storage].dropped = true;
    away_.set(&impl, storage);
}

void Slots::fill(std::size_t storage, StoragePointer made, std::int32_t version) {
    Slot& slot = slots_[storage];
    StoragePointer impl = slot.lock();
    if (impl) {
        if (impl->nbytes() != made->nbytes()) slot.sum = Checksum();
        c10::DataPtr none(nullptr, impl->device());
        impl->set_data_ptr_noswap(made->set_data_ptr(std::move(none)));
    } else {
        if (slot.key() != nullptr) away_.erase(slot.key());
        bind(storage, made.get());
        slot.held = std::move(made);
    }
    slot.dropped = false;
    slot.version = version;
    slot.encoded.reset();
    slot.copy.reset();
    note(storage);
    compare(storage);
}

bool Slots::encode(std::size_t storage, const Encoding& how) {
    Slot& slot = slots_[storage];
    if (!slot.present() || slot.version != slot.written) return false;
    const StoragePointer impl = slot.lock();
    if (impl->device_type() != c10::DeviceType::CPU || impl->allocator() == nullptr) return false;
    auto encoded = std::make_unique<Encoded>();
    encoded->how = how;
    encoded->plainBytes = impl->nbytes();
    encoded->allocator = impl->allocator();
    encoded->version = slot.version;
    if (how.bytes < encodedBytes(how, impl->nbytes())) return false;
    encoded->form = impl->allocator()->allocate(static_cast<std::size_t>(how.bytes));
    const c10::DataPtr& plain = static_cast<const c10::StorageImpl&>(*impl).data_ptr();
    if (!encodeBytes(how, plain.get(), impl->nbytes(), encoded->form.get())) return false;
    const bool ours = slot.held != nullptr;
    if (!drop(storage)) return false;
    if (!slot.dropped && !ours) return true;  // the program has let go of it
    slot.encoded = std::move(encoded);
    return true;
}

void Slots::offload(std::size_t storage) {
    Slot& slot = slots_[storage];
    const StoragePointer impl = slot.lock();
    if (slot.version != slot.written || !impl || impl->device_type() != c10::DeviceType::CPU ||
        !evictable(*impl))
        return;
    slot.copy = HostMemory::ofProcess().copyOut(impl, slot.version);
}

/// Whoever holds the storage goes on to do so.
bool Slots::leave(std::size_t storage) {
    Slot& slot = slots_[storage];
    const StoragePointer impl = slot.lock();
    if (!slot.copy || slot.copy->version() != slot.version || slot.version != slot.written ||
        !evictable(*impl) || !slot.copy->finish())
        return false;
    takeBytes(storage, *impl);
    return true;
}

bool Slots::prefetch(std::size_t storage) {
    const HostCopy* const copy = slots_[storage].copy.get();
    if (copy == nullptr || slots_[storage].present()) return true;
    StoragePointer made = copy->read();
    if (made) fill(storage, std::move(made), copy->version());
    return slots_[storage].present();
}

StoragePointer Slots::decoded(std::size_t storage, std::int32_t version) const {
    const HostCopy* const copy = slots_[storage].copy.get();
    if (copy != nullptr && copy->version() == version) return copy->read();
    const Encoded* const encoded = slots_[storage].encoded.get();
    if (encoded == nullptr || !encoded->how.exact() || encoded->version != version) return {};
    return decode(*encoded);
}

StoragePointer Slots::decode(const Encoded& encoded) {
    auto made = c10::make_intrusive<c10::StorageImpl>(
        c10::StorageImpl::use_byte_size_t(), encoded.plainBytes,
        encoded.allocator->allocate(encoded.plainBytes), encoded.allocator, /*resizable=*/true);
    const c10::DataPtr& plain = static_cast<const c10::StorageImpl&>(*made).data_ptr();
    decodeBytes(encoded.how, encoded.form.get(), encoded.plainBytes, plain.get());
    return made;
}

void Slots::decode(std::size_t storage) {
    const Encoded* const encoded = slots_[storage].encoded.get();
    if (encoded == nullptr) return;
    fill(storage, decode(*encoded), encoded->how.exact() ? encoded->version : kSigns);
}

void Slots::advance(std::size_t storage) {
    ++slots_[storage].version;
    note(storage);
    compare(storage);
}

/// Of what came back in steps, the last version is compared with what was dropped.
void Slots::compare(std::size_t storage) {
    Slot& slot = slots_[storage];
    if (!slot.sum.taken() || slot.dropped || slot.version != slot.written ||
        slot.sum.version != slot.written)
        return;
    const StoragePointer impl = slot.lock();
    if (impl && verifier_ != nullptr && !verifier_->matches(slot.sum, *impl) && !mismatch_)
        mismatch_ = storage;
    slot.sum = Checksum();
}

MismatchKind Slots::likelyKind(const Call& call, Items<Input> inputs) const {
    if (call.kept() && call.foreign()) return MismatchKind::HiddenState;
    const bool exposed = std::any_of(inputs.begin(), inputs.end(), [&](const Input& input) {
        return slots_[input.storage].exposed;
    });
    return exposed ? MismatchKind::UnseenWriter : MismatchKind::Unknown;
}

void Slots::note(std::size_t storage) {
    const Slot& slot = slots_[storage];
    if (slot.away())
        away_.set(slot.key(), storage);
    else
        away_.erase(slot.key());
}

std::int64_t Slots::find(c10::StorageImpl* impl) {
    if (!indexed_) index();
    const std::size_t* const found = bound_.find(impl);
    return found == nullptr ? -1 : static_cast<std::int64_t>(*found);
}

std::int64_t Slots::awayAt(c10::StorageImpl* impl) const {
    const std::size_t* const found = away_.find(impl);
    return found == nullptr ? -1 : static_cast<std::int64_t>(*found);
}

std::vector<std::size_t> Slots::away() const {
    std::vector<std::size_t> list;
    away_.each([&](const c10::StorageImpl*, std::size_t storage) {
        if (slots_[storage].away()) list.push_back(storage);
    });
    std::sort(list.begin(), list.end());
    return list;
}

void Slots::rename(const std::vector<std::int64_t>& to, std::size_t storages) {
    std::vector<Slot> renamed(storages);
    for (std::size_t i = 0; i < to.size(); ++i)
        if (to[i] < 0) letGo(slots_[i]);
    for (std::size_t i = 0; i < to.size(); ++i)
        if (to[i] >= 0) renamed[static_cast<std::size_t>(to[i])] = std::move(slots_[i]);
    slots_ = std::move(renamed);
    bound_.clear();
    indexed_ = false;
    away_.clear();
    for (std::size_t s = 0; s < slots_.size(); ++s)
        if (slots_[s].key() != nullptr) note(s);
}

void Slots::index() {
    for (std::size_t s = 0; s < slots_.size(); ++s)
        if (slots_[s].key() != nullptr) bound_.set(slots_[s].key(), s);
    indexed_ = true;
}

}  // namespace hw::live::runtime

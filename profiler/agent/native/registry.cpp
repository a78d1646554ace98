// SPDX-License-Identifier: MIT
#include "registry.h"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>

#include <algorithm>
#include <iterator>

#include "cuda_allocations.h"
#include "element_types.h"
#include "live_program.h"

namespace hw::profiler::native {
namespace {

constexpr std::int64_t kChunkBytes = wire::kContentsChunk;

std::int64_t bytesOf(const c10::StorageImpl& storage) {
    return static_cast<std::int64_t>(storage.nbytes());
}
std::uintptr_t addressOf(const c10::StorageImpl& storage) {
    return reinterpret_cast<std::uintptr_t>(storage.data());
}

/// Whether somebody tells when a block goes that was made unseen.
bool willBeTold(const c10::StorageImpl& storage, std::uintptr_t address) {
    if (storage.device().is_cpu()) return address % kBlockAlignment == 0;
    // Others' blocks do not go through the framework's allocator, whatever their address.
    const c10::Allocator* const allocator = storage.allocator();
    return storage.device().is_cuda() && cudaBlocksCounted() && allocator != nullptr &&
           storage.data_ptr().get_deleter() == allocator->raw_deleter();
}

/// Without a strong one in between, which takes three more steps.
template <typename Target>
c10::weak_intrusive_ptr<Target> weakTo(Target* target) {
    c10::raw::weak_intrusive_ptr::incref(target);
    return c10::weak_intrusive_ptr<Target>::reclaim(target);
}

wire::LiveForm liveForm(const c10::TensorImpl& tensor) {
    const at::IntArrayRef sizes = tensor.sizes(), strides = tensor.strides();
    wire::LiveForm form(static_cast<std::uint64_t>(c10::typeMetaToScalarType(tensor.dtype())),
                        sizes.size());
    for (const std::int64_t size : sizes) form.mix(size);
    for (const std::int64_t stride : strides) form.mix(stride);
    return form;
}

}  // namespace

std::uint64_t formOf(const c10::TensorImpl& tensor) {
    return liveForm(tensor).value();
}

std::uint64_t viewOf(const at::Tensor& tensor) {
    return liveForm(*tensor.unsafeGetTensorImpl()).mix(tensor.storage_offset()).value();
}

const char* dtypeName(at::ScalarType type) {
    const auto number = static_cast<std::size_t>(type);
    const bool known = type != at::ScalarType::Undefined && number < std::size(wire::kElementTypes);
    return known ? wire::kElementTypes[number] : nullptr;
}

const char* dtypeName(const c10::TensorImpl& tensor) {
    const char* const name = dtypeName(c10::typeMetaToScalarType(tensor.dtype()));
    return name != nullptr ? name : "unknown";
}

void Registry::clear() {
    live_.clear();
    unwatched_.clear();
    owned_.clear();
    ownedAt_.clear();
}

void Registry::poll() {
    if (*agent_.pending != 0) takeFreed();
    if (unwatched_.empty()) return;
    std::vector<Storage*> left;
    for (const Key key : unwatched_)
        if (Storage* storage = known(key); storage != nullptr && storage->weak.expired())
            left.push_back(storage);
    for (Storage* storage : left) gone(*storage);
}

void Registry::takeFreed() {
    static std::int64_t freed[kMostFreed];
    const std::int64_t count = agent_.freed(freed);
    if (count < 0) {
        sweep();
        return;
    }
    for (std::int64_t i = 0; i < count; ++i) {
        Storage* storage = known(reinterpret_cast<Key>(freed[i]));
        if (storage == nullptr) continue;
        const bool emptied = storage->bytes > 0 && bytesOf(*storage->key()) == 0;
        if (emptied || storage->weak.expired()) gone(*storage);  // else: it has another block
    }
}

std::vector<Storage*> Registry::expired() {
    std::vector<Storage*> storages;
    live_.each([&](Key, const std::unique_ptr<Storage>& storage) {
        if (storage->weak.expired()) storages.push_back(storage.get());
    });
    std::sort(storages.begin(), storages.end(),
              [](const Storage* a, const Storage* b) { return a->id < b->id; });
    return storages;
}

void Registry::sweep() {
    for (Storage* storage : expired()) gone(*storage);
}

void Registry::recount() {
    sweep();
    unwatched_.clear();
    uncounted_ = 0;
    live_.each([&](Key, const std::unique_ptr<Storage>& storage) {
        watch(*storage);
        if (!storage->counted) uncounted_ += storage->bytes;
    });
}

void Registry::gone(Storage& storage) {
    if (!storage.counted) uncounted_ -= storage.bytes;
    const std::int64_t id = storage.id;
    const Key key = storage.key();
    if (!unwatched_.empty()) unwatched_.erase(key);
    spare_.push_back(live_.take(key));
    *spare_.back() = Storage();
    stream_.begin(FrameType::Free).put(id).put(nextSeq()).end();
}

/// Sees to it that somebody notices when the storage goes. Two storages may share a block: the
/// first one keeps it as long as it lives.
void Registry::watch(Storage& storage) {
    const Key key = storage.key();
    const std::uintptr_t address = addressOf(*key);
    const bool uncounted = willBeTold(*key, address);
    TaggedBlock block;
    const auto tag = [&](Key key) {
        return address != 0 &&
               agent_.tag(address, reinterpret_cast<std::uint64_t>(key), uncounted, &block) != 0;
    };
    bool watched = tag(key);
    storage.counted = storage.bytes == 0 || block.bytes >= 0;
    storage.address = address;
    storage.old = block.steps >= 0 && block.steps < steps_;
    const Key before = reinterpret_cast<Key>(block.before);
    const Storage* other = watched && before != key ? known(before) : nullptr;
    if (other != nullptr && other->weak.expired()) {
        unwatched_.insert(before);
    } else if (other != nullptr) {
        tag(before);
        watched = false;
    }
    if (!watched)
        unwatched_.insert(key);
    else if (!unwatched_.empty())
        unwatched_.erase(key);
}

Storage* Registry::lookup(const at::Tensor& tensor) {
    const Key key = storageOf(tensor);
    return key != nullptr ? known(key) : nullptr;
}

Storage& Registry::add(Key key, const at::Tensor& tensor, const Place& place, std::int64_t seq) {
    if (spare_.empty()) spare_.push_back(std::make_unique<Storage>());
    Storage& storage = *spare_.back();
    live_.set(key, std::move(spare_.back()));
    spare_.pop_back();
    storage.weak = weakTo(key);
    storage.id = storages_++;
    storage.bytes = bytesOf(*key);
    storage.epoch = epoch_;
    storage.op = place.op;
    storage.phase = place.phase;
    storage.layer = place.layer;
    watch(storage);
    if (!storage.counted) uncounted_ += storage.bytes;
    const bool allAlong = storage.old && place.op < 0 && begun_ >= 0;
    stream_.begin(FrameType::Storage)
        .put(storage.id)
        .put(allAlong ? begun_ : seq)
        .put(storage.bytes)
        .put(place.op)
        .put(place.layer)
        .put(static_cast<std::int64_t>(storage.address))
        .put(static_cast<std::uint8_t>(storage.category))
        .text(tensor.device().is_cpu() ? "cpu" : tensor.device().str())
        .end();
    return storage;
}

void Registry::tellUnknown(std::int64_t live, std::int64_t seq) {
    if (!cudaBlocksCounted()) return;
    std::int64_t unknown = live - toldUnknown_;
    live_.each([&](Key, const std::unique_ptr<Storage>& storage) {
        if (storage->counted) unknown -= storage->bytes;
    });
    if (unknown <= 0) return;
    toldUnknown_ += unknown;
    stream_.begin(FrameType::Storage)
        .put(storages_++)
        .put(seq)
        .put(unknown)
        .put(std::int64_t{-1})
        .put(std::int64_t{-1})
        .put(std::int64_t{0})
        .put(static_cast<std::uint8_t>(Category::Workspace))
        .text("cuda:0")
        .end();
}

std::int64_t Registry::tensorId(Storage& storage, const at::Tensor& tensor, std::int64_t op) {
    c10::TensorImpl* const impl = tensor.unsafeGetTensorImpl();
    const std::uint64_t form = viewOf(tensor);
    for (View& view : storage.views) {
        if (view.form != form) continue;
        for (const auto& holder : view.holders)
            if (holder._unsafe_get_target() == impl) return view.id;
        for (auto& holder : view.holders)
            if (holder.expired()) {
                holder = weakTo(impl);
                return view.id;
            }
        view.holders.push_back(weakTo(impl));
        return view.id;
    }
    storage.views.emplace_back();
    View& view = storage.views.back();
    view.id = tensors_++;
    view.form = form;
    view.holders.push_back(weakTo(impl));
    const at::IntArrayRef sizes = tensor.sizes(), strides = tensor.strides();
    stream_.begin(FrameType::Tensor)
        .put(view.id)
        .put(storage.id)
        .put(op)
        .put(tensor.storage_offset())
        .text(dtypeName(*tensor.unsafeGetTensorImpl()))
        .reserve((sizes.size() + strides.size()) * sizeof(std::int64_t))
        .put(static_cast<std::uint16_t>(sizes.size()));
    for (const std::int64_t size : sizes) stream_.put(size);
    for (const std::int64_t stride : strides) stream_.put(stride);
    stream_.end();
    return view.id;
}

Storage* Registry::constant(const at::Tensor& tensor, std::int64_t layer, std::int64_t& id) {
    const Key key = storageOf(tensor);
    if (key == nullptr) return nullptr;
    Storage* storage = known(key);
    // Bytes that no op gave it count as those of another storage: FSDP takes the bytes of gathered
    // parameters away and gives them back (`untyped_storage().resize_()`).
    if (storage != nullptr && bytesOf(*key) != storage->bytes) {
        gone(*storage);
        storage = nullptr;
    }
    if (storage == nullptr) storage = &add(key, tensor, {-1, Phase::Unknown, layer}, nextSeq());
    id = tensorId(*storage, tensor, -1);
    return storage;
}

Storage* Registry::result(const at::Tensor& tensor, const Place& place, std::int64_t seq,
                          std::int64_t& id, bool& fresh) {
    const Key key = storageOf(tensor);
    if (key == nullptr) return nullptr;
    Storage* storage = known(key);
    fresh = storage == nullptr;
    if (fresh)
        storage = &add(key, tensor, place, seq);
    else if (bytesOf(*key) != storage->bytes)
        resized(*storage);
    id = tensorId(*storage, tensor, place.op);
    return storage;
}

void Registry::resized(Storage& storage) {
    const std::int64_t bytes = bytesOf(*storage.key());
    if (!storage.counted) uncounted_ -= storage.bytes;
    storage.bytes = bytes;
    watch(storage);
    if (!storage.counted) uncounted_ += bytes;
    stream_.begin(FrameType::Resize).put(storage.id).put(bytes).end();
}

/// All bytes of its storage. The agent does not count the copy.
at::Tensor Registry::hostCopy(const at::Tensor& tensor, std::int64_t bytes) {
    const at::AutoDispatchBelowADInplaceOrView belowAutograd;
    const Pause pause(agent_);
    return at::empty({0}, tensor.options().dtype(at::kByte))
        .set_(tensor.storage(), 0, {bytes}, {1})
        .cpu();
}

void Registry::storeContents(Storage& storage, const at::Tensor& tensor) {
    if (storage.stored == epoch_ || (storage.op >= 0 && storage.epoch == epoch_)) return;
    storage.stored = epoch_;
    const bool plain = at::isIntegralType(tensor.scalar_type(), /*includeBool=*/true);
    if (storage.bytes == 0 || !(contents_ || storage.bytes <= wire::kSmallContents || plain))
        return;
    const bool onCuda = tensor.is_cuda();
    if (onCuda && !contents_ && !plain) return;  // each copy waits for the GPU
    const std::string what = "contents of storage " + std::to_string(storage.id);
    if (!tensor.device().is_cpu() && !(onCuda && mayWaitForCuda())) {
        stream_.gap(what, "it is not in host memory");
    } else if (storage.bytes > wire::kMaxPlainContents && !contents_) {
        stream_.gap(what, std::to_string(storage.bytes) +
                              " bytes are more than is stored without --contents");
    } else {
        const at::Tensor copied = onCuda ? hostCopy(tensor, storage.bytes) : at::Tensor();
        const auto* data = onCuda ? static_cast<const char*>(copied.data_ptr())
                                  : reinterpret_cast<const char*>(addressOf(*storage.key()));
        for (std::int64_t offset = 0; offset < storage.bytes; offset += kChunkBytes) {
            const std::int64_t run = std::min(kChunkBytes, storage.bytes - offset);
            stream_.begin(FrameType::Contents)
                .put(seq_)
                .put(storage.id)
                .put(storage.bytes)
                .put(offset)
                .raw({data + offset, static_cast<std::size_t>(run)})
                .end();
        }
    }
}

void Registry::setCategory(Storage& storage, Category category, std::int64_t layer) {
    storage.category = category;
    stream_.begin(FrameType::Category)
        .put(static_cast<std::uint8_t>(category))
        .put(layer)
        .put(std::uint32_t{1})
        .put(storage.id)
        .end();
}

void Registry::categorize(const at::Tensor& tensor, Category category, std::int64_t layer) {
    Storage* storage = lookup(tensor);
    if (storage != nullptr &&
        (storage->category == Category::Unknown || storage->category == Category::Temporary))
        setCategory(*storage, category, layer);
}

void Registry::own(const at::Tensor& tensor, Category category, std::int64_t layer) {
    const auto at = ownedAt_.try_emplace(tensor.unsafeGetTensorImpl(), owned_.size());
    if (at.second) owned_.push_back({weakTo(tensor.unsafeGetTensorImpl()), category, layer});
    Owned& owned = owned_[at.first->second];
    const bool moved = owned.layer != layer;
    owned.category = category;
    owned.layer = layer;
    Storage* const storage = moved ? lookup(tensor) : nullptr;
    if (storage != nullptr && storage->category == category)
        setCategory(*storage, category, layer);
    else
        categorize(tensor, category, layer);
}

void Registry::indexOwned() {
    ownedAt_.clear();
    for (std::size_t i = 0; i < owned_.size(); ++i)
        ownedAt_[owned_[i].weak._unsafe_get_target()] = i;
}

void Registry::letGo(const c10::TensorImpl* tensor) {
    const auto isThis = [&](const auto& weak) { return weak._unsafe_get_target() == tensor; };
    live_.each([&](Key, const std::unique_ptr<Storage>& storage) {
        for (View& view : storage->views)
            view.holders.erase(std::remove_if(view.holders.begin(), view.holders.end(), isThis),
                               view.holders.end());
    });
    owned_.erase(std::remove_if(owned_.begin(), owned_.end(),
                                [&](const Owned& owned) { return isThis(owned.weak); }),
                 owned_.end());
    indexOwned();
}

std::int64_t Registry::categorizeOwned() {
    const std::size_t before = owned_.size();
    owned_.erase(std::remove_if(owned_.begin(), owned_.end(),
                                [](const Owned& owned) { return owned.weak.expired(); }),
                 owned_.end());
    if (owned_.size() != before) indexOwned();
    for (const Owned& owned : owned_)
        if (const at::Tensor tensor{owned.weak.lock()}; tensor.defined())
            categorize(tensor, owned.category, owned.layer);
    return static_cast<std::int64_t>(before - owned_.size());
}

void Registry::categorizeGradients(bool onlyUsed) {
    for (const Owned& owned : owned_) {
        if (owned.category != Category::Parameter) continue;
        const at::Tensor tensor{owned.weak.lock()};
        if (!tensor.defined() || !tensor.is_leaf()) continue;
        const Storage* const storage = onlyUsed ? lookup(tensor) : nullptr;
        if (onlyUsed && (storage == nullptr || storage->stored != epoch_)) continue;
        const at::Tensor& gradient = tensor.unsafeGetTensorImpl()->grad();
        if (gradient.defined()) categorize(gradient, Category::Gradient, owned.layer);
    }
}

void Registry::saveActivations() {
    std::vector<Storage*> saved;
    live_.each([&](Key, const std::unique_ptr<Storage>& storage) {
        if (storage->op >= 0 && storage->epoch == epoch_ && storage->phase == Phase::Forward &&
            storage->category == Category::Unknown)
            saved.push_back(storage.get());
    });
    std::sort(saved.begin(), saved.end(),
              [](const Storage* a, const Storage* b) { return a->id < b->id; });
    for (Storage* storage : saved) setCategory(*storage, Category::Activation, storage->layer);
}

std::vector<std::int64_t> Registry::finals() const {
    std::vector<const Storage*> storages;
    live_.each(
        [&](Key, const std::unique_ptr<Storage>& storage) { storages.push_back(storage.get()); });
    std::sort(storages.begin(), storages.end(),
              [](const Storage* a, const Storage* b) { return a->id < b->id; });
    std::vector<std::int64_t> ids;
    for (const Storage* storage : storages) {
        const std::size_t before = ids.size();
        for (const View& view : storage->views)
            if (std::any_of(view.holders.begin(), view.holders.end(),
                            [](const auto& holder) { return !holder.expired(); }))
                ids.push_back(view.id);
        if (ids.size() == before && !storage->views.empty())
            ids.push_back(storage->views.front().id);
    }
    return ids;
}

}  // namespace hw::profiler::native

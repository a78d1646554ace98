// SPDX-License-Identifier: MIT
#include "unseen_writes.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace hw::profiler::native {
namespace {

const char* dataOf(const c10::StorageImpl& storage) {
    return static_cast<const char*>(storage.data_ptr().get());
}

}  // namespace

bool isForeign(const c10::StorageImpl& storage) {
    const c10::DataPtr& data = storage.data_ptr();
    return storage.device_type() == c10::DeviceType::CPU && storage.nbytes() > 0 &&
           data.get() != nullptr &&
           (storage.allocator() == nullptr ||
            data.get_deleter() != storage.allocator()->raw_deleter());
}

bool isMapped(const void* data, std::int64_t bytes) {
    static const auto kPage = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    const auto from = reinterpret_cast<std::uintptr_t>(data) / kPage * kPage;
    const auto end = reinterpret_cast<std::uintptr_t>(data) + static_cast<std::uintptr_t>(bytes);
    return msync(reinterpret_cast<void*>(from), end - from, MS_ASYNC) == 0;
}

bool isParameter(const c10::TensorImpl& tensor) {
    if (!tensor.requires_grad()) return false;
    // Without another reference: the end of one may wait for Python's lock.
    auto* const impl = const_cast<c10::TensorImpl*>(&tensor);
    at::Tensor borrowed(c10::intrusive_ptr<c10::TensorImpl>::reclaim(impl));
    const bool leaf = borrowed.is_leaf();
    static_cast<void>(borrowed.unsafeReleaseTensorImpl());
    return leaf;
}

bool onlyFills(const std::string& op) {
    constexpr const char* kBegins[] = {"aten::zeros", "aten::ones", "aten::full",   "aten::empty",
                                       "aten::new_",  "aten::rand", "aten::arange", "aten::eye"};
    return std::any_of(std::begin(kBegins), std::end(kBegins),
                       [&](const char* begin) { return op.rfind(begin, 0) == 0; });
}

std::uint64_t sumOf(const AgentApi& agent, const void* data, std::int64_t bytes) {
    return agent.checksum(data, bytes, 1, 0);
}

/// Strides are never negative.
Part partOf(const c10::TensorImpl& tensor) {
    const auto width = static_cast<std::int64_t>(tensor.itemsize());
    std::int64_t last = 0;
    for (std::int64_t d = 0; d < tensor.dim(); ++d)
        last += (tensor.size(d) - 1) * tensor.strides()[static_cast<std::size_t>(d)];
    return {tensor.storage_offset() * width, tensor.numel() == 0 ? 0 : (last + 1) * width};
}

void UnseenWrites::begin() {
    earlier_ = std::exchange(made_, {});
    written_.clear();
    seen_.clear();
    stable_ = true;
}

void UnseenWrites::made(std::int64_t id, const c10::StorageImpl& storage) {
    if (storage.device_type() != c10::DeviceType::CPU || dataOf(storage) == nullptr) return;
    made_[id] = sumOf(agent_, dataOf(storage), static_cast<std::int64_t>(storage.nbytes()));
}

void UnseenWrites::read(std::int64_t id, const at::Tensor& tensor, bool asMade, bool given) {
    const c10::StorageImpl& storage =
        *tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
    const char* const data = dataOf(storage);
    if (data == nullptr) return;
    auto& sums = made_.count(id) != 0 ? made_ : earlier_;
    if (const auto made = sums.find(id); made != sums.end()) {
        const bool same =
            !asMade ||
            made->second == sumOf(agent_, data, static_cast<std::int64_t>(storage.nbytes()));
        if (!same) written_.push_back(id);
        if (!same || !asMade) sums.erase(made);
    }
    const bool filled = std::find(written_.begin(), written_.end(), id) != written_.end();
    const bool watched = isForeign(storage) || filled;
    if (!(watched || given) || isParameter(*tensor.unsafeGetTensorImpl())) return;
    if (!watched && seen_.size() >= kMostSeen / 2) return;
    stable_ = stable_ && seen_.size() < kMostSeen;
    if (!stable_) return;
    const Part part = partOf(*tensor.unsafeGetTensorImpl());
    auto* const impl = const_cast<c10::StorageImpl*>(&storage);
    c10::raw::weak_intrusive_ptr::incref(impl);
    seen_.push_back({c10::weak_intrusive_ptr<c10::StorageImpl>::reclaim(impl), part,
                     sumOf(agent_, data + part.from, part.bytes), !watched});
}

void UnseenWrites::forgetReads(const c10::StorageImpl* storage) {
    seen_.erase(std::remove_if(
                    seen_.begin(), seen_.end(),
                    [&](const Seen& seen) { return seen.storage._unsafe_get_target() == storage; }),
                seen_.end());
}

std::string UnseenWrites::end() {
    for (const Seen& seen : seen_) {
        const auto storage = seen.storage.lock();
        if (!storage && seen.mayGo) continue;
        stable_ = stable_ && storage && dataOf(*storage) != nullptr &&
                  isMapped(dataOf(*storage) + seen.part.from, seen.part.bytes) &&
                  sumOf(agent_, dataOf(*storage) + seen.part.from, seen.part.bytes) == seen.sum;
    }
    std::string ids;
    for (const std::int64_t id : written_) ids += (ids.empty() ? "" : ",") + std::to_string(id);
    return std::string("{\"stable_sources\":") + (stable_ ? "true" : "false") +
           ",\"written_unseen\":[" + ids + "]}";
}

}  // namespace hw::profiler::native

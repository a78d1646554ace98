// SPDX-License-Identifier: MIT
#include "lent_memory.h"

#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>

#include "unseen_writes.h"

namespace hw::live::runtime {
namespace {

/// Stands in the place of what a storage's memory ends with.
struct Ending {
    c10::DataPtr memory;
    std::weak_ptr<LentMemory> lent;
};

/// Without a lock: the memory may end within an op, and wait for Python's lock.
void end(void* context) {
    const std::unique_ptr<Ending> ending(static_cast<Ending*>(context));
    if (const auto lent = ending->lent.lock()) lent->copy();
}

/// Memory of a function that is called at the end, or that nothing is called for. Others are looked
/// at by those who know them.
bool mayStandFor(const c10::DataPtr& memory) {
    static const c10::DeleterFnPtr kFunction = c10::InefficientStdFunctionContext::makeDataPtr(
                                                   nullptr, [](void*) {}, c10::kCPU)
                                                   .get_deleter();
    return memory.get_context() == nullptr || memory.get_deleter() == kFunction;
}

}  // namespace

std::shared_ptr<LentMemory> LentMemory::of(c10::StorageImpl& storage) {
    if (!profiler::native::isForeign(storage)) return nullptr;
    const c10::DataPtr& memory = static_cast<const c10::StorageImpl&>(storage).data_ptr();
    if (memory.get_deleter() == &end) {
        auto& known = static_cast<Ending*>(memory.get_context())->lent;
        std::shared_ptr<LentMemory> lent = known.lock();
        if (!lent) known = lent = std::make_shared<LentMemory>(storage);
        return lent;
    }
    if (!mayStandFor(memory)) return nullptr;
    auto lent = std::make_shared<LentMemory>(storage);
    auto ending = std::make_unique<Ending>();
    ending->lent = lent;
    Ending& place = *ending;
    void* const data = const_cast<void*>(memory.get());
    place.memory =
        storage.set_data_ptr(c10::DataPtr(data, ending.release(), &end, storage.device()));
    return lent;
}

LentMemory::LentMemory(const c10::StorageImpl& storage)
    : data_(storage.data_ptr().get()), bytes_(storage.nbytes()) {}

c10::intrusive_ptr<c10::StorageImpl> LentMemory::copy() {
    State before = State::There;
    if (state_.compare_exchange_strong(before, State::Leaves)) {
        const bool there = profiler::native::isMapped(data_, static_cast<std::int64_t>(bytes_));
        if (void* const data = there ? std::malloc(bytes_) : nullptr) {
            std::memcpy(data, data_, bytes_);
            copy_ = c10::make_intrusive<c10::StorageImpl>(
                c10::StorageImpl::use_byte_size_t(), bytes_,
                c10::DataPtr(data, data, &std::free, c10::kCPU), nullptr, /*resizable=*/false);
        }
        state_ = State::Gone;
    }
    while (state_ != State::Gone) std::this_thread::yield();
    return copy_;
}

}  // namespace hw::live::runtime

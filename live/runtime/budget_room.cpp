// SPDX-License-Identifier: MIT
// Room for allocations that find none, and what a program had made before anybody counted.
#include <algorithm>
#include <mutex>

#include "budget_runtime.h"

namespace hw::live::runtime {

using profiler::native::Reclaim;

namespace {

// Recomputations of a step that take so many times as long as its ops, and so long at least (ns).
constexpr std::int64_t kHopeless = 50, kHopelessNs = 2'000'000'000;

}  // namespace

Reclaim BudgetRuntime::makeRoom(const profiler::native::Shortage& shortage) {
    const Guard guard(lock_);
    if (!acting_) return Reclaim::None;
    const std::int64_t began = agent_.now();
    takeReleased();
    profiler::native::OpWindow window;
    if (tracing_) {
        agent_.end(&window);
        opPeak_ = std::max(opPeak_, window.peak + opEvicted_);
    }
    std::optional<std::int64_t> freed;
    if (!hopeless()) {
        if (log_) log_->line("room", shortage.bytes);
        freed = evictOne();
    }
    if (freed) opEvicted_ += *freed;
    note(shortage, freed);
    const bool above = !freed && adopts_ && shortage.memory == 0;
    if (!freed && !above) return Reclaim::None;
    if (tracing_) agent_.begin(&window);
    evictingNs_ += agent_.now() - began;
    return above ? Reclaim::Above : Reclaim::Made;
}

/// What is evicted is needed again at once, over and over: the step would never end.
bool BudgetRuntime::hopeless() {
    hopeless_ = hopeless_ || figures_.recomputedNs > std::max(kHopeless * opsNs_, kHopelessNs);
    return hopeless_;
}

/// The bytes of what has been evicted; none: nothing more can be.
std::optional<std::int64_t> BudgetRuntime::evictOne() {
    const std::int64_t before = figures_.evictions;
    std::int64_t freed = 0;
    while (figures_.evictions == before) {
        const core::StorageIndex victim = evictor_.choose();
        if (victim == core::kNone && evictor_.takeDeferred()) {
            atAnyPrice_ = true;  // better than none
            continue;
        }
        if (victim == core::kNone && unlockWaiting()) continue;
        if (victim == core::kNone) return std::nullopt;
        freed = slots_[static_cast<Storage>(victim)].alive() ? evictor_[victim].size : 0;
        evict(static_cast<Storage>(victim));
    }
    return freed;
}

void BudgetRuntime::note(const profiler::native::Shortage& shortage,
                         const std::optional<std::int64_t>& freed) {
    const std::string whose = running_ != nullptr ? running_->name : std::string("the program");
    if (!freed) {
        shortage_ = whose + " asked for " + std::to_string(shortage.bytes) + " bytes, and " +
                    (hopeless_ ? "what is evicted for them is needed again at once (thrashing)"
                               : "nothing more can be evicted for them");
        if (log_) log_->flush();  // it is likely to be the program's end
    }
    if (keepsLimit_ && shortage.memory == 0) return;  // nothing has failed
    Rescue& rescue = figures_.rescue;
    if (rescue.op.empty()) {
        rescue.op = whose;
        rescue.bytes = shortage.bytes;
    }
    if (freed) {
        rescue.freedBytes += *freed;
        ++rescue.evictions;
        rescue.allocations += shortage.before == 0 ? 1 : 0;
    } else {
        ++rescue.refused;
        rescue.allocations -= shortage.before > 0 ? 1 : 0;
    }
}

void BudgetRuntime::adopt(const c10::TensorImpl& tensor) {
    const Guard guard(lock_);
    adopts_ = true;
    if (const c10::StorageImpl* const impl = plainStorage(tensor)) count(*impl);
}

/// From now on it is among the live bytes, if it was not.
void BudgetRuntime::count(const c10::StorageImpl& impl) {
    if (!evictable(impl)) return;
    const auto address = reinterpret_cast<std::uint64_t>(impl.data_ptr().get());
    if (agent_.block(address) < 0)
        agent_.allocated(address, static_cast<std::int64_t>(impl.nbytes()));
}

}  // namespace hw::live::runtime

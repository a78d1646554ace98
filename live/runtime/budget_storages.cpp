// SPDX-License-Identifier: MIT
// The storages of a program under a budget: which are there, go, come back, and can no longer.
#include <c10/core/GradMode.h>

#include <algorithm>
#include <atomic>
#include <mutex>

#include "budget_runtime.h"
#include "guards.h"
#include "rebuild.h"

namespace hw::live::runtime {
namespace {

/// Odd, as no address of a block is.
std::uint64_t tagOf(std::uint32_t storage) {
    return 2 * static_cast<std::uint64_t>(storage) + 1;
}

/// Dropped storages that may be gone, while a step is traced: nothing else tells of their end.
std::mutex gGoneLock;
std::vector<c10::StorageImpl*> gGone;
std::atomic<bool> gTracing{false};

void noteGone(void* impl) {
    if (!gTracing.load(std::memory_order_relaxed)) return;
    const std::lock_guard guard(gGoneLock);
    gGone.push_back(static_cast<c10::StorageImpl*>(impl));
}

std::uint64_t addressOf(const c10::StorageImpl& impl) {
    return reinterpret_cast<std::uint64_t>(impl.data_ptr().get());
}

}  // namespace

BudgetRuntime::BudgetRuntime(const profiler::native::AgentApi& agent,
                             planners::DtrHeuristic heuristic, bool planned, bool keepsLimit)
    : Engine(agent),
      heuristic_(heuristic),
      planned_(planned),
      keepsLimit_(keepsLimit),
      evictor_(newEvictor(0)),
      slots_(lock_, &noteGone),
      tags_(static_cast<std::size_t>(profiler::native::kMostFreed)),
      log_(DecisionLog::wanted(static_cast<int>(heuristic))) {
    slots_.verifyWith(&verifier_);
    verifier_.watch(&streams_);
    if (log_) logStretch({});
}

// --- storages

bool BudgetRuntime::present(Storage storage) const {
    const Slot& slot = slots_[storage];
    return slot.present() && slot.version == slot.written;
}

/// The program refers to it.
bool BudgetRuntime::wanted(Storage storage) const {
    const Slot& slot = slots_[storage];
    return slot.weak.use_count() > (slot.held ? 1U : 0U);
}

bool BudgetRuntime::wanted(c10::StorageImpl* impl) {
    const std::int64_t there = slots_.find(impl);
    return there < 0 || wanted(static_cast<Storage>(there));
}

/// What no op has made stays as it is.
BudgetRuntime::Storage BudgetRuntime::known(c10::StorageImpl* impl) {
    const std::int64_t there = slots_.find(impl);
    if (there >= 0) return static_cast<Storage>(there);
    const Storage s = add(impl);
    if (adopts_) count(*impl);
    if (log_) log_->line("constant", s, evictor_[s].size);
    evictor_[s].material = true;
    evictor_.materialized({static_cast<core::StorageIndex>(s)});
    evictor_.pin(s);
    made_[s] = false;
    slots_[s].exposed =
        Guards::on(GuardKind::Exposures) && (isForeign(*impl) || exposures_.isExposed(impl));
    watch(s);
    return s;
}

BudgetRuntime::Storage BudgetRuntime::add(c10::StorageImpl* impl) {
    const Storage s = tape_.addStorage();
    if (s >= room_) {
        room_ = std::max<std::size_t>(1024, 2 * room_);
        evictor_.resize(room_);
        slots_.grow(room_);
        for (auto* flags : {&unfilled_, &made_, &watched_, &needed_, &gradient_})
            flags->resize(room_);
        found_.resize(room_);
        below_.resize(room_);
    }
    watched_[s] = needed_[s] = false;
    made_[s] = true;
    gradient_[s] = !c10::GradMode::is_enabled();
    unfilled_[s] = false;
    DtrStorage& storage = evictor_[s];
    storage = {};
    storage.size = static_cast<std::int64_t>(impl->nbytes());
    storage.everMaterial = true;
    storage.lastAccess = evictor_.state().clock;
    slots_.bind(s, impl);
    return s;
}

/// The agent is to tell when its bytes go.
void BudgetRuntime::watch(Storage storage) {
    const StoragePointer impl = slots_[storage].lock();
    profiler::native::TaggedBlock block;
    watched_[storage] = impl && addressOf(*impl) != 0 &&
                        agent_.tag(addressOf(*impl), tagOf(storage), 0, &block) != 0;
    if (watched_[storage]) return;
    if (trace_) trace_->untold(slots_[storage].key());
    keepAsItIs(storage);
}

/// Nothing makes it again.
void BudgetRuntime::keepAsItIs(Storage storage) {
    if (log_) log_->line("keep", storage);
    forget(storage);
    if (needed_[storage]) hold(storage);
    if (evictor_[storage].material) evictor_.pin(storage);
}

void BudgetRuntime::takeReleased() {
    logReferences();
    if (agent_.pending->load(std::memory_order_relaxed) == 0) return;
    const std::int64_t count = agent_.freed(tags_.data());
    if (count < 0) {
        if (trace_) trace_->allUntold();
        for (Storage s = 0; s < tape_.storages(); ++s) released(s);
    }
    for (std::int64_t i = 0; i < count; ++i) {
        const auto tag = static_cast<std::uint64_t>(tags_[static_cast<std::size_t>(i)]);
        if (tag % 2 == 0 || tag / 2 >= tape_.storages()) continue;
        if (trace_) trace_->mayBeGone(slots_[tag / 2].key());
        released(static_cast<Storage>(tag / 2));
    }
}

void BudgetRuntime::traceStep(std::int64_t live) {
    trace_ = std::make_unique<StepTrace>(agent_, place_, live);
    const std::lock_guard guard(gGoneLock);
    gGone.clear();
    gTracing = true;
}

bool BudgetRuntime::forked() {
    gTracing = false;                     // the lock of what is traced may be another thread's
    static_cast<void>(trace_.release());  // and so are these files and their locks
    static_cast<void>(log_.release());
    agent_.onShortage(nullptr);
    return acting_ && !slots_.away().empty();
}

void BudgetRuntime::leaveTrace() {
    trace_.reset();
    const std::lock_guard guard(gGoneLock);
    gGone.clear();
    gTracing = false;
}

void BudgetRuntime::traceOp(const profiler::native::Operator& op, Values arguments,
                            const std::vector<Storage>& inputs) {
    {
        const std::lock_guard guard(gGoneLock);
        for (c10::StorageImpl* const impl : gGone) trace_->mayBeGone(impl);
        gGone.clear();
    }
    trace_->begin(op, arguments, [&](c10::StorageImpl* impl) { return wanted(impl); });
    for (const Storage s : inputs)
        if (!watched_[s] || slots_[s].isHeld()) trace_->untold(slots_[s].key());
}

/// Its bytes may have gone without us.
void BudgetRuntime::released(Storage storage) {
    DtrStorage& state = evictor_[storage];
    if (!state.material || slots_[storage].alive()) return;
    if (log_) log_->line("freed", storage);
    state.dead = true;
    if (!trace_) slots_.forgetDead(storage);  // which knows storages by their addresses
    if (!tape_.canMake(storage)) {
        evictor_.banished(storage);
        if (made_[storage]) heldBytes_ += state.size;
        loseWith(storage);
        return;
    }
    evictor_.unpin(storage);
    if (state.locks == 0) evictor_.evicted(storage);
}

void BudgetRuntime::evict(Storage storage) {
    if (needed_[storage] || !slots_[storage].alive()) return drop(storage);
    switch (holdSources(storage)) {
        case Sources::Held:
            return drop(storage);
        case Sources::Gone:
            return evictor_.pin(storage);
        case Sources::Dear:
            return evictor_.defer(storage);
    }
}

void BudgetRuntime::drop(Storage storage) {
    evictor_.unpin(storage);
    if (slots_.drop(storage)) {
        evictor_.evicted(storage);
        ++figures_.evictions;
        if (log_) log_->line("evict", storage);
    } else {
        if (log_) log_->line("stuck", storage);
        evictor_.pin(storage);
    }
}

// --- what is not there

/// What was made from these and the program still wants is there, for good: it cannot be made again
/// from here on.
void BudgetRuntime::aboutToChange(const std::vector<Storage>& changed) {
    logReferences();
    if (log_) log_->line("change", changed);
    const auto lost = tape_.lostWith(changed, [&](Storage s) { return wanted(s); });
    for (const Storage s : lost)
        if (wanted(s) && present(s)) evictor_.pin(s);
    for (const Storage s : lost) {
        if (!wanted(s)) continue;
        materialize(s);
        evictor_.pin(s);
    }
    for (const Storage s : lost) giveUp(s);
    for (const Storage s : changed) tape_.forgetReaders(s);
}

/// What was made from these, which are gone for good, cannot be recomputed. False: nothing was.
bool BudgetRuntime::loseWith(Items<Storage> gone) {
    const auto lost = tape_.lostWith(gone, [&](Storage s) { return wanted(s); });
    for (const Storage s : lost) giveUp(s);
    for (const Storage s : gone) tape_.forgetReaders(s);
    return !lost.empty();
}

void BudgetRuntime::forget(Storage storage) {
    if (tape_.canMake(storage) && !tape_.readers(storage).empty()) ++cuts_;
    tape_.forget(storage);
}

/// It cannot be made again any more: what the program wants of it stays.
void BudgetRuntime::giveUp(Storage storage) {
    const bool stays = wanted(storage) && present(storage);
    if (stays) evictor_.pin(storage);
    forget(storage);
    if (stays && (needed_[storage] || !watched_[storage])) hold(storage);
    if (!stays && present(storage) && evictor_[storage].locks == 0) drop(storage);
}

/// The program may let go of it, we do not.
void BudgetRuntime::hold(Storage storage) {
    slots_[storage].hold();
    if (trace_) trace_->untold(slots_[storage].key());
}

void BudgetRuntime::materialize(Storage storage) {
    streams_.run([&] { makeAgain(storage); });
}

/// Chains may be as long as a step: what a goal needs are goals of their own, on a stack of ours.
void BudgetRuntime::makeAgain(Storage storage) {
    std::vector<Goal> goals;
    goals.push_back({storage});
    goals_ = &goals;
    try {
        while (!goals.empty()) {
            Goal& goal = goals.back();
            if (goal.link == 0) released(goal.storage);
            const auto& chain = tape_.chain(goal.storage);
            if (present(goal.storage) || goal.link == chain.size()) {
                if (!present(goal.storage))
                    throw Unrestorable("storage " + std::to_string(goal.storage) +
                                       " is gone and nothing makes it");
                goals.pop_back();
                continue;
            }
            if (nextInput(goal, goals)) continue;
            const TapeOp& op = tape_[chain[goal.link]];
            const std::size_t waiting = goals.size() - 1;
            runAgain(op, goal.storage,
                     waiting > 0
                         ? &tape_[tape_.chain(goals[waiting - 1].storage)[goals[waiting - 1].link]]
                                .inputs
                         : nullptr);
            for (const Storage s : goal.locked) evictor_.unlock(s);
            goal.locked.clear();
            goal.missing.clear();
            goal.begun = false;
            goal.next = 0;
            ++goal.link;
        }
        goals_ = nullptr;
    } catch (...) {
        goals_ = nullptr;
        if (log_) log_->line("broken");
        for (const Goal& goal : goals)
            for (const Storage s : goal.locked) evictor_.unlock(s);
        for (const Goal& goal : goals)
            if (goal.link > 0) drop(goal.storage);  // what is not whole is not there
        throw;
    }
}

/// Locks what the goal's next op reads; true: something of it is to be made first.
bool BudgetRuntime::nextInput(Goal& goal, std::vector<Goal>& goals) {
    const auto& inputs = tape_[tape_.chain(goal.storage)[goal.link]].inputs;
    const auto lock = [&](Storage s) {
        evictor_.lock(s);
        goal.locked.push_back(s);
    };
    if (!std::exchange(goal.begun, true))  // what is there, first: it is not to go for the rest
        for (const Input& input : inputs) {
            if (input.version == kUnread) continue;
            evictor_[input.storage].lastAccess = evictor_.state().clock;
            if (input.storage == goal.storage || present(input.storage))
                lock(input.storage);
            else
                goal.missing.push_back(input.storage);
        }
    for (; goal.next < goal.missing.size(); ++goal.next) {
        const Storage s = goal.missing[goal.next];
        if (!present(s)) {
            goals.push_back({s});
            return true;
        }
        lock(s);
    }
    if (!goal.missing.empty())  // the first of them may have waited long for the others
        for (const Input& input : inputs)
            if (input.version != kUnread)
                evictor_[input.storage].lastAccess = evictor_.state().clock;
    goal.locked.clear();  // they are unlocked in this order
    for (const Input& input : inputs)
        if (input.version != kUnread) goal.locked.push_back(input.storage);
    return false;
}

/// What the program's next op reads is there, and locked.
void BudgetRuntime::bring(Running& running) {
    const auto lock = [&](Storage s) {
        evictor_.lock(s);
        running.locked.push_back(s);
    };
    do {
        running.unlocked = false;
        running.missing.clear();
        for (const Storage s : running.inputs) evictor_[s].lastAccess = evictor_.state().clock;
        for (const Storage s : running.inputs) {
            if (present(s))
                lock(s);
            else
                running.missing.push_back(s);
        }
        for (const Storage s : running.missing) {
            waiting_ = &running;
            try {
                materialize(s);
            } catch (...) {
                waiting_ = nullptr;
                throw;
            }
            waiting_ = nullptr;
            if (running.unlocked) break;
            lock(s);
        }
    } while (running.unlocked);
    running.locked = running.inputs;  // they are unlocked in this order
}

/// What waits for something else to be made lets what it has locked so far go, the longest first:
/// it is recomputed once the other is there. False: nothing waits.
bool BudgetRuntime::unlockWaiting() {
    if (unlocks_ == planners::kUnlocks) return false;
    const auto unlock = [&](auto& locked) {
        ++unlocks_, ++unlocked_;
        for (const Storage s : locked) evictor_.unlock(s);
        locked.clear();
    };
    if (waiting_ != nullptr && !waiting_->locked.empty()) {
        unlock(waiting_->locked);
        return waiting_->unlocked = true;
    }
    if (goals_ == nullptr) return false;
    for (std::size_t i = 0; i + 1 < goals_->size(); ++i) {
        Goal& goal = (*goals_)[i];
        if (goal.link > 0 || goal.locked.empty()) continue;
        unlock(goal.locked);
        goal.missing.clear();
        goal.begun = false;
        goal.next = 0;
        return true;
    }
    return false;
}

/// Of what the op makes besides, it keeps what the program still wants, and what is waited for.
void BudgetRuntime::runAgain(const TapeOp& op, Storage wantedOne, const Items<Input>* waiting) {
    if (log_) log_->line("again", wantedOne);
    const std::int64_t began = agent_.now();
    verifySources(op);
    const std::vector<at::Tensor> results = op.call.run(
        agent_, op.inputs, [&](const Input& input) { return slots_[input.storage].lock(); });
    ++figures_.recomputedOps;
    figures_.recomputedNs += streams_.any() ? op.cost : agent_.now() - began;
    const bool varies = noteVaried(op);
    madeAgain_.clear();
    if (log_) log_->line("made");
    const auto take = [&](Storage s, std::size_t result) {
        if (log_) log_->filled(s);
        if (varies) slots_.vary(s);
        slots_.fill(s, StoragePointer::reclaim_copy(plainStorage(results[result])), 0);
        evictor_[s].material = true;
        madeAgain_.push_back(static_cast<core::StorageIndex>(s));
    };
    const auto waitedFor = [&](Storage s) {
        return waiting != nullptr &&
               std::any_of(waiting->begin(), waiting->end(),
                           [&](const Input& input) { return input.storage == s; });
    };
    std::int64_t wantedResult = -1;
    for (std::size_t j = 0; j < op.outputs.size() && j < results.size(); ++j) {
        const Output& output = op.outputs[j];
        if (!output.makes) continue;
        const Storage s = output.storage;
        if (s == wantedOne)
            wantedResult = static_cast<std::int64_t>(j);
        else if (!slots_[s].present() && tape_.chain(s).size() == 1 && (wanted(s) || waitedFor(s)))
            take(s, j);
    }
    if (wantedResult >= 0) take(wantedOne, static_cast<std::size_t>(wantedResult));
    for (const std::uint32_t s : op.writes) {
        if (varies) slots_.vary(s);
        slots_.advance(s);
    }
    evictor_.state().clock += op.cost;
    evictor_.materialized(madeAgain_);
    for (const core::StorageIndex s : madeAgain_) watch(static_cast<Storage>(s));
    verifyRecomputed(op);
    if (log_) log_->line("done");
}

}  // namespace hw::live::runtime

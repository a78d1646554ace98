// SPDX-License-Identifier: MIT
// The storages of a program under a budget: which are there, go, come back, and can no longer.
#include <c10/core/GradMode.h>

#include <algorithm>
#include <atomic>
#include <mutex>

#include "budget_runtime.h"
#include "guards.h"
#include "rebuild.h"

namespace hw::executor::live {
namespace {

/// Odd, as no address of a block is.
std::uint64_t tagOf(std::uint32_t storage) {
    return 2 * static_cast<std::uint64_t>(storage) + 1;
}

planners::HeuristicOptions options() {
    planners::HeuristicOptions options;
    options.some = true;
    return options;
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
      evictor_(0, heuristic, options()),
      slots_(lock_, &noteGone),
      tags_(static_cast<std::size_t>(profiler::native::kMostFreed)),
      log_(DecisionLog::wanted(static_cast<int>(heuristic))) {
    slots_.verifyWith(&verifier_);
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

/// What nobody has made stays as it is.
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
        for (auto* flags : {&unfilled_, &leftEmpty_, &made_, &watched_, &needed_, &gradient_})
            flags->resize(room_);
        found_.resize(room_);
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
    std::int64_t block[3];
    watched_[storage] = impl && addressOf(*impl) != 0 &&
                        agent_.tag(addressOf(*impl), tagOf(storage), 0, block) != 0;
    if (watched_[storage]) return;
    if (trace_) trace_->untold(slots_[storage].key());
    keepAsItIs(storage);
}

/// Nothing makes it again.
void BudgetRuntime::keepAsItIs(Storage storage) {
    if (log_) log_->line("keep", storage);
    tape_.forget(storage);
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
        if (!watched_[s] || slots_[s].held) trace_->untold(slots_[s].key());
}

/// Its bytes may have gone without us.
void BudgetRuntime::released(Storage storage) {
    DtrStorage& state = evictor_[storage];
    if (!state.material || slots_[storage].alive()) return;
    if (log_) log_->line("freed", storage);
    state.dead = true;
    if (!trace_) slots_.forgetDead(storage);  // which knows storages by their addresses
    if (!tape_.canMake(storage)) return evictor_.banished(storage);
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

/// It cannot be made again any more: what the program wants of it stays.
void BudgetRuntime::giveUp(Storage storage) {
    const bool stays = wanted(storage) && present(storage);
    if (stays) evictor_.pin(storage);
    tape_.forget(storage);
    if (stays && (needed_[storage] || !watched_[storage])) hold(storage);
    if (!stays && present(storage) && evictor_[storage].locks == 0) drop(storage);
}

/// The program may let go of it, we do not.
void BudgetRuntime::hold(Storage storage) {
    if (!slots_[storage].held) slots_[storage].held = slots_[storage].weak.lock();
    if (trace_) trace_->untold(slots_[storage].key());
}

/// What it would be made from stays until then. Gone: something of it is not there and nothing
/// makes it; most of what goes so is never missed, so only now is it looked up what was made from
/// it. Dear: that may take more than it gives, where the program would let go of it; or what it
/// would be made from is a gradient that autograd adds to in place as long as nobody else refers to
/// it, and else to a copy.
BudgetRuntime::Sources BudgetRuntime::holdSources(Storage storage) {
    for (auto* const list : {&ahead_, &passed_, &sources_}) list->clear();
    ahead_.push_back(storage);
    std::int64_t bytes = 0;
    bool shared = false;
    std::optional<Storage> gone;
    needed_[storage] = true;
    while (!ahead_.empty()) {
        const Storage s = ahead_.back();
        ahead_.pop_back();
        passed_.push_back(s);
        for (const std::uint32_t op : tape_.chain(s))
            for (const Input& input : tape_[op].inputs) {
                if (input.version == kUnread || needed_[input.storage]) continue;
                needed_[input.storage] = true;
                if (tape_.canMake(input.storage)) {
                    ahead_.push_back(input.storage);
                    continue;
                }
                if (!slots_[input.storage].alive()) gone = input.storage;
                sources_.push_back(input.storage);
                if (made_[input.storage]) bytes += evictor_[input.storage].size;
                shared = shared || (gradient_[input.storage] && wanted(input.storage) &&
                                    !slots_[input.storage].held);
            }
    }
    if (gone || ((shared || bytes > evictor_[storage].size) && !atAnyPrice_)) {
        for (const auto* const list : {&passed_, &sources_})
            for (const Storage s : *list) needed_[s] = false;
        if (!gone && shared && log_) log_->line("shared", storage);
        if (!gone) return Sources::Dear;
        released(*gone);
        const auto lost = tape_.lostWith(*gone, [&](Storage s) { return wanted(s); });
        for (const Storage s : lost) giveUp(s);
        tape_.forgetReaders(*gone);
        // It may be made from what has just become a source, as it is there.
        return !lost.empty() && tape_.canMake(storage) ? holdSources(storage) : Sources::Gone;
    }
    for (const Storage s : sources_) hold(s);
    return Sources::Held;
}

void BudgetRuntime::materialize(Storage storage) {
    streams_.run([&] { makeAgain(storage); });
}

/// Chains may be as long as a step: what a goal needs are goals of their own, on a stack of ours.
void BudgetRuntime::makeAgain(Storage storage) {
    std::vector<Goal> goals;
    goals.push_back({storage});
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
    } catch (...) {
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

/// Of what the op makes besides, it keeps what the program still wants, and what is waited for.
void BudgetRuntime::runAgain(const TapeOp& op, Storage wantedOne, const Items<Input>* waiting) {
    if (log_) log_->line("again", wantedOne);
    const std::int64_t began = agent_.now();
    const std::vector<at::Tensor> results = op.call.run(
        agent_, op.inputs, [&](const Input& input) { return slots_[input.storage].lock(); });
    ++figures_.recomputedOps;
    figures_.recomputedNs += streams_.any() ? op.cost : agent_.now() - began;
    madeAgain_.clear();
    if (log_) log_->line("made");
    const auto take = [&](Storage s, std::size_t result) {
        if (log_) log_->filled(s);
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
    for (const std::uint32_t s : op.writes) slots_.advance(s);
    evictor_.state().clock += op.cost;
    evictor_.materialized(madeAgain_);
    for (const core::StorageIndex s : madeAgain_) watch(static_cast<Storage>(s));
    verifyRecomputed(op);
    if (log_) log_->line("done");
}

// --- between steps

/// What is there is what the next step begins with. Of what the program wants and is not there, it
/// stays known how it is made.
void BudgetRuntime::settle() {
    takeReleased();
    atAnyPrice_ = false;
    if (trace_) trace_->allUntold();  // storages have other numbers from here on, or none
    std::vector<bool> makes(tape_.storages(), false), kept(tape_.storages(), false);
    std::vector<Storage> ahead;
    const auto keep = [&](Storage s) {
        if (kept[s]) return;
        kept[s] = true;
        makes[s] = !present(s);
        if (makes[s]) ahead.push_back(s);
    };
    for (const std::size_t away : slots_.away()) keep(static_cast<Storage>(away));
    if (ahead.empty()) return reset();
    while (!ahead.empty()) {
        const Storage s = ahead.back();
        ahead.pop_back();
        for (const std::uint32_t op : tape_.chain(s))
            for (const Input& input : tape_[op].inputs)
                if (input.version != kUnread) keep(input.storage);
    }
    std::vector<std::int64_t> to(tape_.storages(), -1);
    std::vector<DtrStorage> states;
    for (Storage s = 0; s < tape_.storages(); ++s) {
        if (!kept[s]) continue;
        to[s] = static_cast<std::int64_t>(states.size());
        states.push_back(evictor_[s]);
        if (!makes[s]) hold(s);
    }
    tape_.compact(to, states.size(), makes);
    slots_.rename(to, tape_.storages());
    const std::int64_t clock = evictor_.state().clock;
    room_ = tape_.storages();
    for (auto* flags : {&unfilled_, &leftEmpty_, &made_, &watched_, &needed_, &gradient_})
        flags->assign(room_, false);
    found_.resize(room_);
    needed_.assign(room_, true);  // all are held, or made from what is
    evictor_ = planners::Evictor(room_, heuristic_, options());
    evictor_.state().clock = clock;
    for (std::size_t i = 0; i < tape_.size(); ++i)
        for (const Input& input : tape_[i].inputs) {
            if (input.version == kUnread) continue;
            for (const Output& output : tape_[i].outputs)
                if (output.storage != kNobody) evictor_.link(input.storage, output.storage);
            for (const std::uint32_t written : tape_[i].writes)
                evictor_.link(input.storage, written);
        }
    if (log_) logStretch(states);
    for (Storage s = 0; s < states.size(); ++s) {
        DtrStorage& state = evictor_[s];
        state.size = states[s].size;
        state.compute = states[s].compute;
        state.lastAccess = states[s].lastAccess;
        state.material = state.everMaterial = true;
        evictor_.materialized({static_cast<core::StorageIndex>(s)});
        if (tape_.canMake(s))
            evictor_.evicted(static_cast<core::StorageIndex>(s));
        else
            evictor_.pin(static_cast<core::StorageIndex>(s));
    }
}

void BudgetRuntime::reset() {
    const std::int64_t clock = evictor_.state().clock;
    tape_.compact(std::vector<std::int64_t>(tape_.storages(), -1), 0,
                  std::vector<bool>(tape_.storages(), false));
    slots_.reset(room_);  // the next step is likely to need as many
    streams_.reset();
    evictor_ = planners::Evictor(room_, heuristic_, options());
    evictor_.state().clock = clock;
    if (log_) logStretch({});
}

}  // namespace hw::executor::live

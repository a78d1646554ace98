// SPDX-License-Identifier: MIT
#include "budget_runtime.h"

#include <algorithm>
#include <string>
#include <unordered_set>

#include "rebuild.h"

namespace hw::executor::live {
namespace {

using planners::DtrStorage;

/// Odd, as no address of a block is.
std::uint64_t tagOf(std::uint32_t storage) {
    return 2 * static_cast<std::uint64_t>(storage) + 1;
}

planners::HeuristicOptions options() {
    planners::HeuristicOptions options;
    options.some = true;
    return options;
}

bool aliases(const c10::Argument& result) {
    return result.alias_info() != nullptr && !result.alias_info()->isWrite();
}

/// Its results are views, for which it looks at no bytes.
bool onlyViews(const c10::FunctionSchema& schema) {
    return !schema.is_mutable() && !schema.returns().empty() &&
           std::all_of(schema.returns().begin(), schema.returns().end(), &aliases);
}

/// All that are defined have plain memory.
bool allPlain(Values values) {
    bool all = true;
    profiler::native::eachTensor(values, [&](const at::Tensor& tensor) {
        const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
        all = all && (plainStorage(impl) != nullptr || impl.is_wrapped_number());
    });
    return all;
}

bool startsWith(const std::string& text, const char* begin) {
    return text.rfind(begin, 0) == 0;
}

/// Makes storages without filling them.
bool leavesEmpty(const profiler::native::Operator& op) {
    return startsWith(op.name, "aten::empty") || startsWith(op.name, "aten::new_empty");
}

/// What they write does not depend on what was there.
const std::unordered_set<std::string> kFilling{
    "aten::zero_",      "aten::fill_",        "aten::copy_",      "aten::bernoulli_",
    "aten::uniform_",   "aten::normal_",      "aten::random_",    "aten::cauchy_",
    "aten::geometric_", "aten::exponential_", "aten::log_normal_"};

/// Goes on with its tensors after it has returned, and writes them without saying so.
bool isCollective(const profiler::native::Operator& op) {
    return startsWith(op.name, "c10d::") || startsWith(op.name, "_c10d_functional");
}

bool contains(const std::vector<std::uint32_t>& storages, std::uint32_t storage) {
    return std::find(storages.begin(), storages.end(), storage) != storages.end();
}

/// Its bytes are the framework's to give back, and in the processor's memory.
bool evictable(const c10::StorageImpl& impl) {
    return impl.device_type() == c10::DeviceType::CPU && impl.nbytes() > 0 &&
           impl.allocator() != nullptr && impl.data_ptr().get() != nullptr &&
           impl.data_ptr().get_deleter() == impl.allocator()->raw_deleter();
}

std::uint64_t addressOf(const c10::StorageImpl& impl) {
    return reinterpret_cast<std::uint64_t>(impl.data_ptr().get());
}

}  // namespace

BudgetRuntime::BudgetRuntime(const profiler::native::AgentApi& agent,
                             planners::DtrHeuristic heuristic)
    : Engine(agent),
      heuristic_(heuristic),
      evictor_(0, heuristic, options()),
      tags_(static_cast<std::size_t>(profiler::native::kMostFreed)) {}

// --- steps

void BudgetRuntime::begin() {
    const Guard guard(lock_);
    figures_ = {};
    opsNs_ = 0;
    divergence_.reset();
    if (!acting_) return;
    if (guide_) guide_->begin();
    if (!wantsTrace_ || guide_) return;
    std::int64_t window[5];
    agent_.begin(window);
    std::int64_t live = window[0];
    for (const std::size_t away : slots_.away())
        live += evictor_[static_cast<core::StorageIndex>(away)].size;
    trace_ = std::make_unique<StepTrace>(agent_, live);
}

bool BudgetRuntime::follow(const std::string& program, std::string& why) {
    const Guard guard(lock_);
    auto read = readProgram(program, why);
    if (!read) return false;
    guide_ = std::make_unique<Guide>(std::move(*read));
    missed_ = 0;
    return true;
}

void BudgetRuntime::forward() {
    const Guard guard(lock_);
    if (!acting_) return;
    if (guide_ && guide_->follows()) return guide_->forward();
    settle();
}

Boundary BudgetRuntime::boundary() {
    const Guard guard(lock_);
    if (!acting_) return Boundary::Unplanned;
    keepsAll_ = false;
    const bool planned = guide_ && guide_->whole();
    endGuide();
    endTrace();
    settle();
    noteThrashing();
    return planned ? Boundary::Planned : Boundary::Budget;
}

/// Two steps in a row that were not the planned ones: the program has changed, and is looked at
/// anew.
void BudgetRuntime::endGuide() {
    constexpr int kPatience = 2, kMostTraces = 48;
    if (!guide_) return;
    missed_ = guide_->whole() ? 0 : missed_ + 1;
    if (missed_ < kPatience) return;
    guide_.reset();
    wantsTrace_ = traces_ < kMostTraces;
}

void BudgetRuntime::endTrace() {
    if (!trace_) {
        wantsTrace_ = wantsTrace_ || (traces_ == 0 && !guide_);  // the first step is like no other
        return;
    }
    constexpr std::size_t kSteps = 3;  // whose times are taken together
    constexpr int kMostSteps = 12;     // of a program with other ones each time: the last will do
    auto trace = std::move(trace_);
    if (trace->broken() || trace->ops() == 0) return;
    trace->finish([&](c10::StorageImpl* impl) { return wanted(impl); });
    ++traces_;
    if (steps_ == nullptr || !steps_->merge(*trace)) steps_ = std::move(trace);
    if (steps_->steps() < kSteps && traces_ % kMostSteps != 0) return;
    traced_ = std::exchange(steps_, nullptr)->json();
    wantsTrace_ = false;
}

void BudgetRuntime::interrupt(const std::string&) {
    const Guard guard(lock_);
    if (!acting_) return;
    for (const std::size_t away : slots_.away()) materialize(static_cast<Storage>(away));
    for (Storage s = 0; s < tape_.storages(); ++s)
        if (present(s)) evictor_.pin(static_cast<int>(s));
    keepsAll_ = true;
    if (guide_) guide_->leave();
    if (trace_) trace_->failed();
}

void BudgetRuntime::release() {
    const Guard guard(lock_);
    if (!acting_) return;
    agent_.onShortage(nullptr);
    try {
        for (const std::size_t away : slots_.away()) materialize(static_cast<Storage>(away));
    } catch (const std::exception& error) {
        if (fault_.empty()) fault_ = error.what();
    }
    acting_ = false;
    guide_.reset();
    trace_.reset();
    reset(0);
}

void BudgetRuntime::noteThrashing() {
    if (saidThrashing_ || figures_.recomputedNs <= opsNs_) return;
    saidThrashing_ = true;
    fault_ = "thrashing: making storages again takes longer than the ops of the step themselves (" +
             std::to_string(figures_.recomputedNs / 1000000) + " ms beside " +
             std::to_string(opsNs_ / 1000000) + " ms in one step); a larger budget would help";
}

// --- ops

void BudgetRuntime::op(const profiler::native::Passing& op, torch::jit::Stack* stack) {
    if (op.known.profiler) return letProfilerBy(op, stack);
    Guard guard(lock_);
    ++figures_.ops;
    if (!acting_) {
        guard.unlock();
        return op.handle.redispatchBoxed(op.below, stack);
    }
    running_ = &op.known;
    Running running;
    const std::int64_t came = agent_.now();
    const std::int64_t recomputed = figures_.recomputedNs;
    try {
        prepare(op, torch::jit::last(*stack, op.known.schema->arguments().size()), running);
    } catch (...) {
        unlock(running);
        throw;
    }
    evictingNs_ = opPeak_ = opEvicted_ = 0;
    std::int64_t window[5];
    if (trace_) {
        trace_->begin(op.known, torch::jit::last(*stack, op.known.schema->arguments().size()),
                      [&](c10::StorageImpl* impl) { return wanted(impl); });
        tracing_ = true;
        agent_.begin(window);
    }
    const std::int64_t live = trace_ ? window[0] : 0;
    guard.unlock();
    const std::int64_t began = agent_.now();
    try {
        op.handle.redispatchBoxed(op.below, stack);
    } catch (...) {
        guard.lock();
        failed(running);
        throw;
    }
    const std::int64_t ended = agent_.now();
    guard.lock();
    if (std::exchange(tracing_, false)) {
        agent_.end(window);
        opPeak_ = std::max(opPeak_, window[3] + opEvicted_);
        trace_->end(torch::jit::last(*stack, op.known.schema->returns().size()),
                    std::max<std::int64_t>(1, ended - began - evictingNs_), opPeak_ - live);
    }
    const std::int64_t cost = std::max<std::int64_t>(1, ended - began - evictingNs_);
    opsNs_ += cost;
    finish(torch::jit::last(*stack, op.known.schema->returns().size()), cost, running);
    figures_.runtimeNs +=
        agent_.now() - ended + began - came + evictingNs_ - (figures_.recomputedNs - recomputed);
}

/// What it reads is there and stays, and what it is about to write is no more than that.
void BudgetRuntime::prepare(const profiler::native::Passing& op, Values values, Running& running) {
    running.op = &op.known;
    takeReleased();
    const Tensors tensors = plainTensors(values);
    for (const c10::TensorImpl* const tensor : tensors)
        running.inputs.push_back(known(plainStorage(*tensor)));
    for (const std::size_t index : op.known.writes)
        for (const c10::TensorImpl* const tensor : plainTensors(values.slice(index, 1)))
            if (const Storage s = known(plainStorage(*tensor)); !contains(running.written, s))
                running.written.push_back(s);
    if (guide_) {
        running.planned = guide_->begin(*op.known.schema, tensors, running.inputs, [&](Storage s) {
            return evictor_[static_cast<core::StorageIndex>(s)].size;
        });
        if (!guide_->follows() && !divergence_)
            divergence_ = Divergence{static_cast<std::int64_t>(guide_->position()),
                                     guide_->expected(), op.known.name};
        if (running.planned != nullptr) follow(running.planned->before);
    }
    if (onlyViews(*op.known.schema)) return;
    std::vector<Storage> missing;
    for (const Storage s : running.inputs) evictor_[s].lastAccess = evictor_.state().clock;
    for (const Storage s : running.inputs) {
        if (!present(s)) {
            missing.push_back(s);
            continue;
        }
        evictor_.lock(s);
        running.locked.push_back(s);
    }
    for (const Storage s : missing) {
        materialize(s);
        evictor_.lock(s);
        running.locked.push_back(s);
    }
    for (const Storage s : running.inputs) {
        const bool filled =
            !unfilled_[s] || (contains(running.written, s) && kFilling.count(op.known.name) != 0);
        if (!filled || isCollective(op.known)) {
            aboutToChange({s});
            keepAsItIs(s);  // whoever filled it called no op
        } else if (unfilled_[s] && tape_.canMake(s)) {
            evictor_.unpin(s);
        }
        unfilled_[s] = false;
    }
    if (!running.written.empty()) aboutToChange(running.written);
    running.onTape = mayRunAgain(op, values, tensors, running);
}

/// Whether it is worth while and possible to keep how to run the op again; then it is kept.
bool BudgetRuntime::mayRunAgain(const profiler::native::Passing& op, Values values,
                                const Tensors& tensors, Running& running) {
    if (keepsAll_ || op.known.adopts || isCollective(op.known) ||
        !deviceOf(tensors, toldDevice(values)).is_cpu())
        return false;
    std::vector<Storage> written = running.written;
    if (updatesStatistics(*op.known.schema, values)) {
        for (const std::size_t index : op.known.writes)
            for (const c10::TensorImpl* const tensor : plainTensors(values.slice(index, 1)))
                running.unread.push_back(known(plainStorage(*tensor)));
        written.clear();
        running.written = running.unread;
    }
    if (written.size() > 1 || (!written.empty() && !tape_.canMake(written.front()))) return false;
    TapeOp& kept = tape_.next();
    std::vector<Input> inputs;  // for their number only, as yet
    inputs.resize(running.inputs.size());
    kept.op.inputs = Items<Input>(inputs);
    kept.op.random = op.known.random;
    agent_.pause(1);
    const bool plain = kept.call.keep(op.handle, values, tensors, kept.op);
    agent_.pause(0);
    if (!plain) kept.call.clear();
    return plain;
}

void BudgetRuntime::finish(Values results, std::int64_t cost, Running& running) {
    planners::DtrState& state = evictor_.state();
    if (!allPlain(results))  // they may look at the bytes in a way of their own
        for (const Storage s : running.inputs) keepAsItIs(s);
    std::vector<Output> outputs;
    std::vector<Storage> touched;
    std::vector<core::StorageIndex> made;
    for (const c10::TensorImpl* const tensor : plainTensors(results)) {
        c10::StorageImpl* const impl = plainStorage(*tensor);
        const std::int64_t there = slots_.find(impl);
        const Storage s = there >= 0 ? static_cast<Storage>(there) : add(impl);
        outputs.push_back({s, there < 0, 0, static_cast<std::int64_t>(impl->nbytes())});
        if (there < 0) {
            made.push_back(static_cast<core::StorageIndex>(s));
            unfilled_[s] = leavesEmpty(*running.op);
        }
        if (!contains(touched, s)) touched.push_back(s);
    }
    const std::size_t ofOutputs = touched.size();
    for (const Storage s : running.written)
        if (!contains(touched, s)) touched.push_back(s);
    for (const Storage s : touched) evictor_.announce(static_cast<core::StorageIndex>(s), cost);
    for (const Storage input : running.inputs) {
        if (contains(running.unread, input)) continue;
        for (const Output& output : outputs) evictor_.link(input, output.storage);
        for (std::size_t k = ofOutputs; k < touched.size(); ++k) evictor_.link(input, touched[k]);
    }
    state.clock += cost;
    for (const core::StorageIndex s : made) state.storages[s].material = true;
    evictor_.materialized(made);

    const bool updates = !running.unread.empty();
    if (!made.empty() && !running.written.empty() && !updates) running.onTape = false;
    for (const Storage s : running.written) {
        Slot& slot = slots_[s];
        slot.version = ++slot.written;
        needed_[s] = false;
        const StoragePointer impl = slot.lock();
        const bool resized = impl && static_cast<std::int64_t>(impl->nbytes()) != evictor_[s].size;
        if (!running.onTape || updates || resized) keepAsItIs(s);
    }
    const bool changes = !made.empty() || (!running.written.empty() && !updates);
    if (running.onTape && changes) {
        std::vector<Input> inputs;
        const bool writes = !running.written.empty() && !updates;
        for (const Storage s : running.inputs) {
            const bool own = writes && s == running.written.front();
            inputs.push_back(
                {s, 0, contains(running.unread, s) ? kUnread : slots_[s].written - (own ? 1 : 0)});
        }
        tape_.next().cost = cost;
        tape_.add(inputs, outputs, writes ? running.written : std::vector<Storage>());
        for (const Storage s : running.inputs)
            if (!tape_.canMake(s) && !watched_[s] && !contains(running.unread, s)) hold(s);
    }
    for (const core::StorageIndex s : made) {
        const auto storage = static_cast<Storage>(s);
        const StoragePointer impl = slots_[storage].lock();
        if (!running.onTape || !impl || !evictable(*impl))
            keepAsItIs(storage);
        else
            watch(storage);
        if (unfilled_[storage]) evictor_.pin(s);
    }
    unlock(running);
    for (const Output& output : outputs) state.storages[output.storage].lastAccess = state.clock;
    if (running.planned != nullptr && guide_->end(outputs)) follow(running.planned->after);
}

void BudgetRuntime::follow(Items<Action> actions) {
    try {
        for (const Action& action : actions) follow(action);
    } catch (const std::exception&) {  // there is no room for it: DTR does without
        guide_->leave();
    }
}

void BudgetRuntime::follow(const Action& action) {
    if (action.kind == wire::LiveAction::Recompute) {
        const ProgramOp& op = guide_->op(action.target);
        for (const std::uint32_t output : action.outputs)
            if (const std::int64_t s = guide_->storage(op.outputs[output].storage);
                op.outputs[output].makes && s >= 0)
                materialize(static_cast<Storage>(s));
        return;
    }
    const std::int64_t known = guide_->storage(action.target);
    if (known < 0) return;
    const auto s = static_cast<Storage>(known);
    const DtrStorage& state = evictor_[s];
    switch (action.kind) {
        case wire::LiveAction::Hold:
            if (present(s)) slots_[s].held = slots_[s].lock();
            return;
        case wire::LiveAction::Release:
        case wire::LiveAction::Drop:
            released(s);
            if (!state.material || state.locks > 0 || !tape_.canMake(s)) return;
            if (action.kind == wire::LiveAction::Drop || !wanted(s)) evict(s);
            return;
        default:  // what a later op would take away is made again before it anyway
            return;
    }
}

/// Nobody knows what it has written.
void BudgetRuntime::failed(Running& running) {
    for (const Storage s : running.written) {
        ++slots_[s].written;
        slots_[s].version = slots_[s].written;
        keepAsItIs(s);
    }
    unlock(running);
    tracing_ = false;
    if (trace_) trace_->failed();
    if (guide_ && running.planned != nullptr) guide_->leave();
}

void BudgetRuntime::unlock(Running& running) {
    for (const Storage s : running.locked) evictor_.unlock(s);
    running.locked.clear();
}

/// What was made from these and the program still wants is there, for good: it cannot be made again
/// from here on.
void BudgetRuntime::aboutToChange(const std::vector<Storage>& changed) {
    const std::vector<Storage> lost = tape_.lostWith(changed, [&](Storage s) { return wanted(s); });
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

void BudgetRuntime::opBeside(const profiler::native::Passing& op, torch::jit::Stack* stack) {
    {
        const Guard guard(lock_);
        if (acting_) {
            const Values values = torch::jit::last(*stack, op.known.schema->arguments().size());
            std::vector<Storage> written;
            for (const std::size_t index : op.known.writes)
                for (const c10::TensorImpl* const tensor : plainTensors(values.slice(index, 1)))
                    if (const auto s = slots_.find(plainStorage(*tensor)); s >= 0)
                        written.push_back(static_cast<Storage>(s));
            for (const c10::TensorImpl* const tensor : plainTensors(values)) touch(*tensor, true);
            aboutToChange(written);
            for (const Storage s : written) {
                slots_[s].version = ++slots_[s].written;
                keepAsItIs(s);
            }
        }
    }
    op.handle.redispatchBoxed(op.below, stack);
}

void BudgetRuntime::touch(const c10::TensorImpl& tensor, bool stays) {
    const Guard guard(lock_);
    c10::StorageImpl* const impl = plainStorage(tensor);
    if (!acting_ || impl == nullptr) return;
    const std::int64_t there = slots_.find(impl);
    if (there < 0) return;
    const auto s = static_cast<Storage>(there);
    const bool away = !present(s);
    if (away) materialize(s);
    if (stays || away) evictor_.pin(s);
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
    evictor_[s].material = true;
    evictor_.materialized({static_cast<core::StorageIndex>(s)});
    evictor_.pin(s);
    made_[s] = false;
    watch(s);
    return s;
}

BudgetRuntime::Storage BudgetRuntime::add(c10::StorageImpl* impl) {
    const Storage s = tape_.addStorage();
    if (s >= room_) {
        room_ = std::max<std::size_t>(1024, 2 * room_);
        evictor_.resize(room_);
        slots_.grow(room_);
        for (auto* flags : {&unfilled_, &made_, &watched_, &needed_}) flags->resize(room_);
    }
    watched_[s] = needed_[s] = false;
    made_[s] = true;
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
    std::int64_t before[2];
    watched_[storage] = impl && agent_.tag(addressOf(*impl), tagOf(storage), 0, before) != 0;
    if (!watched_[storage]) keepAsItIs(storage);
}

/// Nothing makes it again.
void BudgetRuntime::keepAsItIs(Storage storage) {
    tape_.forget(storage);
    if (needed_[storage]) hold(storage);
    if (evictor_[storage].material) evictor_.pin(storage);
}

void BudgetRuntime::takeReleased() {
    if (agent_.pending->load(std::memory_order_relaxed) == 0) return;
    const std::int64_t count = agent_.freed(tags_.data());
    if (count < 0)
        for (Storage s = 0; s < tape_.storages(); ++s) released(s);
    for (std::int64_t i = 0; i < count; ++i) {
        const auto tag = static_cast<std::uint64_t>(tags_[static_cast<std::size_t>(i)]);
        if (tag % 2 == 1 && tag / 2 < tape_.storages()) released(static_cast<Storage>(tag / 2));
    }
}

/// Its bytes may have gone without us.
void BudgetRuntime::released(Storage storage) {
    DtrStorage& state = evictor_[storage];
    if (!state.material || slots_[storage].alive()) return;
    state.dead = true;
    if (!tape_.canMake(storage)) {
        evictor_.banished(storage);
        const std::vector<Storage> lost =
            tape_.lostWith({storage}, [&](Storage s) { return wanted(s); });
        for (const Storage s : lost) giveUp(s);
        return tape_.forgetReaders(storage);
    }
    evictor_.unpin(storage);
    if (state.locks == 0) evictor_.evicted(storage);
}

void BudgetRuntime::evict(Storage storage) {
    if (!needed_[storage] && slots_[storage].alive() && !holdSources(storage))
        return evictor_.pin(storage);
    drop(storage);
}

void BudgetRuntime::drop(Storage storage) {
    evictor_.unpin(storage);
    if (slots_.drop(storage)) {
        evictor_.evicted(storage);
        ++figures_.evictions;
    } else {
        evictor_.pin(storage);
    }
}

bool BudgetRuntime::makeRoom(std::int64_t bytes) {
    const Guard guard(lock_);
    if (!acting_) return false;
    const std::int64_t began = agent_.now();
    takeReleased();
    std::int64_t window[5];
    if (tracing_) {
        agent_.end(window);
        opPeak_ = std::max(opPeak_, window[3] + opEvicted_);
    }
    const std::int64_t before = figures_.evictions;
    while (figures_.evictions == before) {
        const core::StorageIndex victim = evictor_.choose();
        if (victim == core::kNone) {
            shortage_ = (running_ != nullptr ? running_->name : std::string("the program")) +
                        " asked for " + std::to_string(bytes) +
                        " bytes, and nothing more can be evicted for them";
            return false;
        }
        if (slots_[static_cast<Storage>(victim)].alive()) opEvicted_ += evictor_[victim].size;
        evict(static_cast<Storage>(victim));
    }
    if (tracing_) agent_.begin(window);
    evictingNs_ += agent_.now() - began;
    return true;
}

// --- what is not there

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
}

/// What it would be made from stays until then. False: that would take more than it gives.
bool BudgetRuntime::holdSources(Storage storage) {
    std::vector<Storage> ahead{storage}, passed, sources;
    std::int64_t bytes = 0;
    std::optional<Storage> gone;
    needed_[storage] = true;
    while (!ahead.empty()) {
        const Storage s = ahead.back();
        ahead.pop_back();
        passed.push_back(s);
        for (const std::uint32_t op : tape_.chain(s))
            for (const Input& input : tape_[op].op.inputs) {
                if (input.version == kUnread || needed_[input.storage]) continue;
                needed_[input.storage] = true;
                if (tape_.canMake(input.storage)) {
                    ahead.push_back(input.storage);
                    continue;
                }
                if (!slots_[input.storage].alive()) gone = input.storage;
                sources.push_back(input.storage);
                if (made_[input.storage]) bytes += evictor_[input.storage].size;
            }
    }
    if (gone || bytes > evictor_[storage].size) {
        for (const auto* const list : {&passed, &sources})
            for (const Storage s : *list) needed_[s] = false;
        if (gone) released(*gone);
        return false;
    }
    for (const Storage s : sources) hold(s);
    return true;
}

/// Chains may be as long as a step: what a goal needs are goals of their own, on a stack of ours.
void BudgetRuntime::materialize(Storage storage) {
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
                if (goal.link > 0) evictor_.unlock(goal.storage);
                goals.pop_back();
                continue;
            }
            if (nextInput(goal, goals)) continue;
            const TapeOp& op = tape_[chain[goal.link]];
            const std::size_t waiting = goals.size() - 1;
            runAgain(op, goal.storage,
                     waiting > 0
                         ? &tape_[tape_.chain(goals[waiting - 1].storage)[goals[waiting - 1].link]]
                                .op.inputs
                         : nullptr);
            for (const Storage s : goal.locked) evictor_.unlock(s);
            goal.locked.clear();
            if (goal.link++ == 0) evictor_.lock(goal.storage);
            goal.next = 0;
        }
    } catch (...) {
        for (const Goal& goal : goals) {
            for (const Storage s : goal.locked) evictor_.unlock(s);
            if (goal.link > 0) {  // what is not whole is not there
                evictor_.unlock(goal.storage);
                drop(goal.storage);
            }
        }
        throw;
    }
}

/// Locks what the goal's next op reads; true: something of it is to be made first.
bool BudgetRuntime::nextInput(Goal& goal, std::vector<Goal>& goals) {
    const auto& inputs = tape_[tape_.chain(goal.storage)[goal.link]].op.inputs;
    const auto lock = [&](Storage s) {
        evictor_.lock(s);
        goal.locked.push_back(s);
    };
    if (goal.next == 0)  // what is there, first: it is not to go for the rest
        for (const Input& input : inputs) {
            if (input.version == kUnread || input.storage == goal.storage ||
                contains(goal.locked, input.storage))
                continue;
            evictor_[input.storage].lastAccess = evictor_.state().clock;
            if (present(input.storage)) lock(input.storage);
        }
    for (; goal.next < inputs.size(); ++goal.next) {
        const Storage s = inputs[goal.next].storage;
        if (inputs[goal.next].version == kUnread || s == goal.storage || contains(goal.locked, s))
            continue;
        if (!present(s)) {
            goals.push_back({s});
            return true;
        }
        lock(s);
    }
    return false;
}

/// Of what the op makes besides, it keeps what the program still wants, and what is waited for.
void BudgetRuntime::runAgain(const TapeOp& op, Storage wantedOne, const Items<Input>* waiting) {
    const std::int64_t began = agent_.now();
    const std::vector<at::Tensor> results =
        op.call.run(op.op, [&](const Input& input) { return slots_[input.storage].lock(); });
    ++figures_.recomputedOps;
    figures_.recomputedNs += agent_.now() - began;
    std::vector<core::StorageIndex> made;
    const auto take = [&](Storage s, std::size_t result) {
        slots_.fill(s, StoragePointer::reclaim_copy(plainStorage(results[result])), 0);
        evictor_[s].material = true;
        made.push_back(static_cast<core::StorageIndex>(s));
    };
    const auto waitedFor = [&](Storage s) {
        return waiting != nullptr &&
               std::any_of(waiting->begin(), waiting->end(),
                           [&](const Input& input) { return input.storage == s; });
    };
    std::int64_t wantedResult = -1;
    for (std::size_t j = 0; j < op.op.outputs.size() && j < results.size(); ++j) {
        const Output& output = op.op.outputs[j];
        if (!output.makes) continue;
        const Storage s = output.storage;
        if (s == wantedOne)
            wantedResult = static_cast<std::int64_t>(j);
        else if (!slots_[s].present() && tape_.chain(s).size() == 1 && (wanted(s) || waitedFor(s)))
            take(s, j);
    }
    if (wantedResult >= 0) take(wantedOne, static_cast<std::size_t>(wantedResult));
    for (const std::uint32_t s : op.op.writes) slots_.advance(s);
    evictor_.state().clock += op.cost;
    evictor_.materialized(made);
    for (const core::StorageIndex s : made) watch(static_cast<Storage>(s));
}

// --- between steps

/// What is there is what the next step begins with. Of what the program wants and is not there, it
/// stays known how it is made.
void BudgetRuntime::settle() {
    takeReleased();
    std::vector<bool> makes(tape_.storages(), false), kept(tape_.storages(), false);
    std::vector<Storage> ahead;
    const auto keep = [&](Storage s) {
        if (kept[s]) return;
        kept[s] = true;
        makes[s] = !present(s);
        if (makes[s]) ahead.push_back(s);
    };
    for (const std::size_t away : slots_.away()) keep(static_cast<Storage>(away));
    if (ahead.empty()) return reset(0);
    while (!ahead.empty()) {
        const Storage s = ahead.back();
        ahead.pop_back();
        for (const std::uint32_t op : tape_.chain(s))
            for (const Input& input : tape_[op].op.inputs)
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
    for (auto* flags : {&unfilled_, &made_, &watched_, &needed_}) flags->assign(room_, false);
    needed_.assign(room_, true);  // all are held, or made from what is
    evictor_ = planners::Evictor(room_, heuristic_, options());
    evictor_.state().clock = clock;
    for (std::size_t i = 0; i < tape_.size(); ++i)
        for (const Input& input : tape_[i].op.inputs) {
            if (input.version == kUnread) continue;
            for (const Output& output : tape_[i].op.outputs)
                if (output.storage != kNobody) evictor_.link(input.storage, output.storage);
            for (const std::uint32_t written : tape_[i].op.writes)
                evictor_.link(input.storage, written);
        }
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

void BudgetRuntime::reset(std::size_t storages) {
    const std::int64_t clock = evictor_.state().clock;
    tape_.compact(std::vector<std::int64_t>(tape_.storages(), -1), storages,
                  std::vector<bool>(tape_.storages(), false));
    slots_.reset(0);
    room_ = 0;
    evictor_ = planners::Evictor(0, heuristic_, options());
    evictor_.state().clock = clock;
}

}  // namespace hw::executor::live

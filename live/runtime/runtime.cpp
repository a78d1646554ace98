// SPDX-License-Identifier: MIT
#include "runtime.h"

#include <algorithm>
#include <chrono>

#include "core/graph/unseen_ops.h"
#include "extension_calls.h"
#include "guards.h"

namespace hw::live::runtime {
namespace {

std::string describe(const c10::FunctionSchema& schema, const Tensors& tensors) {
    std::string text = schema.name();
    if (!schema.overload_name().empty()) text += "." + schema.overload_name();
    text += "(";
    for (std::size_t i = 0; i < tensors.size() && i < 4; ++i) {
        text += i == 0 ? "[" : ", [";
        for (std::int64_t d = 0; d < tensors[i]->dim(); ++d)
            text += (d == 0 ? "" : ", ") + std::to_string(tensors[i]->size(d));
        text += "]";
    }
    return text + ")";
}

bool receives(const c10::FunctionSchema& schema, Values values) {
    std::vector<std::int64_t> sizes;
    if (!values.empty() && values[0].isIntList()) sizes = values[0].toIntVector();
    const bool empty = std::find(sizes.begin(), sizes.end(), 0) != sizes.end();
    return receivesBatch(schema.name(), schema.overload_name(), empty);
}

}  // namespace

/// The next op runs on a GPU.
void Runtime::follow(c10::Device device, const Tensors& tensors) {
    for (const std::size_t op : streams_.follow(device, anyOnCuda(tensors), position_))
        pin(program().ops[op]);
    if (streams_.elsewhere()) pin(program().ops[position_]);
}

/// It runs on another stream than the plan: what it reads and makes stays, as it is not known here
/// when that stream is done with it.
void Runtime::pin(const ProgramOp& op) {
    for (const Input& input : op.inputs) program().storages[input.storage].pinned = true;
    for (const Output& output : op.outputs) program().storages[output.storage].pinned = true;
}

/// What the op reads is there, at the version that the program left.
void Runtime::ensureInputs(const ProgramOp& op) {
    if (op.onlyViews) return;
    for (const Input& input : op.inputs) {
        Slot& slot = slots_[input.storage];
        slot.unread = false;
        if (op.comparesWithZero && slot.version == kSigns && !slot.dropped) continue;
        if (slot.away()) restore(input.storage);
    }
}

/// An op leaves little of ours in the processor's caches. What the next one needs is on its way
/// while the program gets there: it lies right behind what this one needed.
void Runtime::fetchAhead(const ProgramOp& now) {
    const auto* const op = reinterpret_cast<const char*>(&now + 1);
    const auto* const items = reinterpret_cast<const char*>(now.after.end());
    for (int line = 0; line < 128; line += 64) {
        __builtin_prefetch(op + line);
        __builtin_prefetch(items + line);
    }
    if (settled_ || position_ == program().ops.size()) return;
    for (const Input& input : (&now + 1)->inputs) __builtin_prefetch(&slots_[input.storage]);
    for (const Output& output : (&now + 1)->outputs) __builtin_prefetch(&slots_[output.storage]);
}

/// An op that is in no plan, between two ops of this one: it may not write what the plan knows.
bool Runtime::mayPass(const c10::FunctionSchema& schema, Values values) {
    for (std::size_t i = 0; i < schema.arguments().size(); ++i) {
        const c10::AliasInfo* const alias = schema.arguments()[i].alias_info();
        if (alias == nullptr || !alias->isWrite()) continue;
        StorageList written;
        for (const c10::TensorImpl* const tensor : plainTensors(values.slice(i, 1), &written))
            written.push_back(plainStorage(*tensor));
        for (c10::StorageImpl* const storage : written)
            if (slots_.find(storage) >= 0) return false;
    }
    return true;
}

/// What an op that is in no plan reads is there.
void Runtime::bring(const Tensors& tensors) {
    for (const c10::TensorImpl* const tensor : tensors)
        if (const std::int64_t s = slots_.awayAt(plainStorage(*tensor)); s >= 0)
            restore(static_cast<std::size_t>(s));
}

/// Runs an op of the framework that is not the planned one and changes nothing that the plan knows.
/// Where it raises an exception it might as well not have come: no recording has it. Else the plan
/// is left.
void Runtime::tryOther(const profiler::native::Passing& op, torch::jit::Stack* stack, Guard& guard,
                       const Tensors& tensors, const std::string& why) {
    const std::string found = describe(*op.known.schema, tensors) + ": " + why;
    bring(tensors);
    stopClock();
    begins(guard);
    try {
        op.handle.redispatchBoxed(op.below, stack);
    } catch (...) {
        ended(guard);
        throw;
    }
    ended(guard);
    startClock();
    if (planned()) diverge(found);
}

/// What came before is not what the plan is for.
void Runtime::restartFigures() {
    profiler::native::MemoryWindow passed;
    agent_.window(&passed);
    figures_.begunNs = agent_.now();
    profiler::native::OpWindow window;
    if (traced_) agent_.begin(&window);
}

void Runtime::noteLiveBytes() {
    profiler::native::OpWindow window;
    agent_.end(&window);
    curve_.push_back(window.peak);
    agent_.begin(&window);
}

/// Until no op of the plan runs in another thread: what it works on is not to be made again
/// meanwhile. It might need what we hold, so there is an end to it.
void Runtime::awaitOp(Guard& guard) {
    constexpr std::chrono::seconds kPatience(2);
    if (running_ == std::this_thread::get_id()) return;
    ++waiting_;
    ended_.wait_for(guard, kPatience, [&] { return running_ == std::thread::id(); });
    --waiting_;
}

void Runtime::begins(Guard& guard) {
    running_ = std::this_thread::get_id();
    guard.unlock();
}

void Runtime::ended(Guard& guard) {
    guard.lock();
    running_ = std::thread::id();
    if (waiting_ > 0) ended_.notify_all();
}

/// An op that looked like the planned one has made something else.
void Runtime::otherResults(const ProgramOp& op) {
    if (early_ && op.writes.empty())
        passed_ = true;
    else
        diverge("other results of " + program().fullName(op));
}

void Runtime::diverge(const std::string& found) {
    const std::string expected = position_ < program().ops.size()
                                     ? program().fullName(program().ops[position_])
                                     : "the step's end";
    restoreAll();
    program().known.clear();
    divergence_ = Divergence{static_cast<std::int64_t>(position_), expected, found};
    if (position_ >= program().doneAt) {
        profiler::native::MemoryWindow window;
        agent_.window(&window);
        donePeak_ = window.peak;
    }
    forgetStep();
    settleDevices();
}

void Runtime::restoreForGood(const std::string& why) {
    if (fault_.empty()) fault_ = why;
    programs_.clear();
}

void Runtime::interrupt(const std::string& why) {
    const std::lock_guard<OpLock> guard(lock_);
    if (planned()) diverge(why);
}

/// Its kernels write what no op shows: the rest of the step keeps everything.
void Runtime::region(const std::string& what) {
    const std::lock_guard<OpLock> guard(lock_);
    if (what.empty() || !Guards::on(GuardKind::Compiled)) return;
    if (fault_.empty())
        fault_ = what +
                 ": steps with such regions are not carried out under the plan, which is for ops "
                 "that run one by one";
    if (planned()) diverge("a region of " + what);
}

void Runtime::release() {
    const std::lock_guard<OpLock> guard(lock_);
    if (planned()) {
        try {
            restoreAll();
            settleDevices();
        } catch (const std::exception& error) {  // a forked process cannot use the GPU
            restoreForGood(error.what());
        }
        forgetStep();
    }
    restoreForGood("released");
}

bool Runtime::forked() {
    running_ = std::thread::id();  // that thread is not there, nor are those that wait for it
    waiting_ = 0;
    return planned() && !slots_.away().empty();
}

void Runtime::touch(const c10::TensorImpl& tensor, bool stays) {
    Guard guard(lock_);
    StorageList storages;
    addStorages(tensor, storages);
    for (c10::StorageImpl* const impl : storages) {
        if (stays) exposures_.expose(impl);
        bringAndPin(guard, impl, stays);
        if (!stays || !planned()) continue;
        if (const std::int64_t storage = slots_.find(impl); storage >= 0)
            expose(static_cast<std::size_t>(storage));
    }
}

void Runtime::hand(const c10::TensorImpl& tensor) {
    Guard guard(lock_);
    StorageList storages;
    addStorages(tensor, storages);
    for (c10::StorageImpl* const impl : storages) bringAndPin(guard, impl, true);
}

/// Its bytes are there. `pins`: and stay.
void Runtime::bringAndPin(Guard& guard, c10::StorageImpl* impl, bool pins) {
    if (!planned()) return;
    if (slots_.awayAt(impl) >= 0) awaitOp(guard);
    if (!planned()) return;
    if (const std::int64_t away = slots_.awayAt(impl); away >= 0) {
        const bool timed = std::exchange(timed_, false);
        restore(static_cast<std::size_t>(away));
        timed_ = timed;
        pins = true;
    }
    if (!pins) return;
    if (const std::int64_t storage = slots_.find(impl); storage >= 0)
        program().storages[static_cast<std::size_t>(storage)].pinned = true;
}

/// What an op reads through tensors that are not plain is there and stays; where it writes so, the
/// plan is left. Whether it is kept to.
bool Runtime::bringHidden(Guard& guard, const profiler::native::Operator& op, Values values,
                          const StorageList& hidden) {
    for (c10::StorageImpl* const impl : hidden) bringAndPin(guard, impl, true);
    StorageList written;
    for (const std::size_t index : op.writes) plainTensors(values.slice(index, 1), &written);
    const bool known = std::any_of(written.begin(), written.end(), [&](c10::StorageImpl* impl) {
        return planned() && slots_.find(impl) >= 0;
    });
    if (known)
        diverge(op.name + ": it writes memory of the plan through a tensor that is not plain");
    return planned();
}

void Runtime::change(c10::StorageImpl* storage) {
    Guard guard(lock_);
    exposures_.forgetReads(storage);
    if (!planned() || slots_.find(storage) < 0) return;
    awaitOp(guard);
    if (!planned()) return;
    const auto known = static_cast<std::size_t>(slots_.find(storage));
    if (program().storages[known].gathered)
        slots_.unbind(known);  // what is gathered into it next is another storage of the plan
    else
        diverge("other bytes for a storage, by no op");
}

/// What it reads is there, and stays; before it writes what the plan knows, the plan is left.
void Runtime::opBeside(const profiler::native::Passing& op, torch::jit::Stack* stack) {
    Guard guard(lock_);
    if (planned()) {
        const Values values = torch::jit::last(*stack, op.known.schema->arguments().size());
        StorageList hidden;
        const Tensors tensors = plainTensors(values, &hidden);
        const bool writes = !mayPass(*op.known.schema, values);
        const bool gone =
            std::any_of(tensors.begin(), tensors.end(), [&](const c10::TensorImpl* tensor) {
                return slots_.awayAt(plainStorage(*tensor)) >= 0;
            });
        if (writes || gone) awaitOp(guard);
        if (writes && planned()) diverge("another thread's " + describe(*op.known.schema, tensors));
        for (const c10::TensorImpl* const tensor : tensors)
            bringAndPin(guard, plainStorage(*tensor), true);
        for (c10::StorageImpl* const impl : hidden) bringAndPin(guard, impl, true);
        static_cast<void>(streams_.elsewhere());  // waits for what has been made again
    }
    guard.unlock();
    op.handle.redispatchBoxed(op.below, stack);
}

void Runtime::timeSome() {
    timed_ = ++seen_ % kOpsPerTimed == 0;
    startClock();
}

/// Everything is ready for the planned op. False: it is not to be planned, and the plan is left.
bool Runtime::before(const profiler::native::Passing& op, const Tensors& tensors, c10::Device told,
                     c10::function_ref<Values()> values) {
    if (std::exchange(begins_, false)) {
        program().forwardAt = position_;
        nodesBefore_ = at::sequence_number::peek();
    }
    if (std::exchange(passed_, false)) restartFigures();
    const ProgramOp& planned = program().ops[position_];
    if (const c10::Device device = deviceOf(tensors, told); device.is_cuda()) {
        program().onGpu = true;
        follow(device, tensors);
    }
    for (const std::uint32_t storage : planned.gone) slots_.forgetDead(storage);
    if (!holdsDue_.empty()) holdBatches();
    perform(planned.before);
    ensureInputs(planned);
    if (planned.hasStatistics && !noteStatistics(op.known, tensors, values())) return false;
    if (planned.keep || !(planned.agrees || op.known.writes.empty())) {
        const Values arguments = values();
        if (!agreesWithSchema(op.known, arguments)) return false;
        if (planned.keep && !keepCall(op, tensors, arguments)) return false;
    }
    stopClock();
    return true;
}

/// The planned op has run. `plain`: all of its results have plain memory.
void Runtime::after(const Tensors& results, bool plain) {
    startClock();
    const ProgramOp& planned = program().ops[position_];
    if (!bindOutputs(planned, results)) return otherResults(planned);
    if (std::exchange(unkept_, false)) keepResults();
    if (!plain) keepInputs();
    if (planned.onlyFills || inExtension()) noteBorn(planned);
    for (const std::uint32_t storage : planned.writes) {
        ++slots_[storage].written;
        slots_[storage].version = slots_[storage].written;
        if (slots_[storage].key() != nullptr &&
            planned.varies.on(slots_[storage].key()->device_type()))
            slots_[storage].uncompared = true;
        if (!exposures_.trusted(false)) exposures_.forgetReads(slots_[storage].key());
    }
    ++position_;
    if (traced_) noteLiveBytes();
    perform(planned.after);
    if (position_ >= program().doneAt && verifier_.queued()) settleDevices();
    if (position_ >= program().settledAt) settle();
    fetchAhead(planned);
    stopClock();
}

void Runtime::failed() {
    unkept_ = false;
    if (planned()) diverge("an exception in " + program().fullName(program().ops[position_]));
}

void Runtime::op(const profiler::native::Passing& op, torch::jit::Stack* stack) {
    if (op.known.profiler) return letProfilerBy(op, stack);
    Guard guard(lock_);
    throwIfCondemned();
    if (running_ != std::thread::id() && running_ != std::this_thread::get_id()) {
        guard.unlock();  // a thread of the framework's that runs ops of the program side by side
        return opBeside(op, stack);
    }
    ++figures_.ops;
    const auto letBy = [&] {
        guard.unlock();
        op.handle.redispatchBoxed(op.below, stack);
    };
    if (aside_) profiler::native::standAside(true);
    const Values values = torch::jit::last(*stack, op.known.schema->arguments().size());
    if (!planned()) noteUnplanned(op.known, values);
    if (aside_ || !planned()) return letBy();
    timeSome();
    StorageList hidden;
    const Tensors tensors = plainTensors(values, &hidden);
    if (!hidden.empty() && !bringHidden(guard, op.known, values, hidden)) return letBy();
    if (early_ && isBatch(*op.known.schema, values, tensors)) return letBy();
    if (position_ < program().ops.size() && program().ops[position_].schema == nullptr)
        findAllSchemas();  // torch.compile makes ops within a step
    if (settled_ ? passSettled(*op.known.schema, tensors)
                 : passAside(*op.known.schema, tensors, toldDevice(values)))
        return letBy();
    std::string why = settled_ ? "another op" : mismatch(*op.known.schema, tensors);
    if (!why.empty() && !settled_ && switchTo(*op.known.schema, tensors)) why.clear();
    if (!why.empty()) {
        const bool passes = mayPass(*op.known.schema, values);
        if (passes && !early_ && core::beginsWith(op.known.name, "aten::"))
            return tryOther(op, stack, guard, tensors, why);
        if (passes && early_) {
            bring(tensors);
            passed_ = true;
        } else {
            diverge(describe(*op.known.schema, tensors) + ": " + why);
        }
    }
    if (!why.empty() || !before(op, tensors, toldDevice(values), [&] { return values; }))
        return letBy();
    runPlanned(op, stack, guard);
}

/// What ops outside of a plan show of what plans go by later.
void Runtime::noteUnplanned(const profiler::native::Operator& known, Values values) {
    if (!exposures_.trusted(false)) watchSources(known, plainTensors(values), values);
    if (hasStatistics(known.name)) noteStatistics(known, {}, values);
}

/// Before the forward pass. Whether the op receives a batch, of which any number come then.
bool Runtime::isBatch(const c10::FunctionSchema& schema, Values values, const Tensors& tensors) {
    if (!receives(schema, values)) {
        skipBatches();
    } else if (!forward_ && mayPass(schema, values)) {
        bring(tensors);
        return true;
    }
    if (forward_) endEarly();
    return false;
}

/// The planned op runs, without the lock; everything is there for it.
void Runtime::runPlanned(const profiler::native::Passing& op, torch::jit::Stack* stack,
                         Guard& guard) {
    begins(guard);
    try {
        op.handle.redispatchBoxed(op.below, stack);
    } catch (...) {
        ended(guard);
        failed();
        throw;
    }
    ended(guard);
    if (!planned()) return;
    const Values results = torch::jit::last(*stack, op.known.schema->returns().size());
    StorageList hidden;
    const Tensors plain = plainTensors(results, &hidden);
    after(plain, allPlain(results));
    for (c10::StorageImpl* const impl : hidden) bringAndPin(guard, impl, true);
}

profiler::native::Turn Runtime::beginTyped(const profiler::native::Passing& op,
                                           const profiler::native::Arguments& arguments,
                                           c10::function_ref<torch::jit::Stack()> box) {
    using profiler::native::Turn;
    // Neither made nor ended under the lock: a reference to a tensor may wait for Python's lock,
    // and who has that may wait for ours.
    torch::jit::Stack stack;
    Guard guard(lock_);
    if (mismatch_ || (running_ != std::thread::id() && running_ != std::this_thread::get_id()))
        return Turn::Boxed;
    if (!planned() && hasStatistics(op.known.name)) return Turn::Boxed;
    if (aside_) profiler::native::standAside(true);
    if (aside_ || !planned()) {
        ++figures_.ops;
        if (planned() || exposures_.trusted(false)) return Turn::Unseen;
        if (!op.known.writes.empty() && exposures_.anyRead()) {
            --figures_.ops;
            return Turn::Boxed;
        }
        watchSources(op.known, plainTensors(arguments.tensors), {});
        return Turn::Unseen;
    }
    timeSome();
    StorageList hidden;
    const Tensors tensors = plainTensors(arguments.tensors, &hidden);
    if (early_ || !hidden.empty()) return Turn::Boxed;
    const bool aside = settled_ ? passSettled(*op.known.schema, tensors)
                                : passAside(*op.known.schema, tensors, arguments.device);
    if (!aside && (settled_ || !mismatch(*op.known.schema, tensors).empty())) return Turn::Boxed;
    if (aside) {
        ++figures_.ops;
        return Turn::Unseen;
    }
    const ProgramOp& planned = program().ops[position_];
    if (planned.keep || planned.hasStatistics || !(planned.agrees || op.known.writes.empty())) {
        guard.unlock();
        stack = box();
        guard.lock();
        if (!this->planned() || compare(*op.known.schema, tensors)) return Turn::Boxed;
    }
    ++figures_.ops;
    const auto values = [&] { return Values(stack.data(), stack.size()); };
    if (!before(op, tensors, arguments.device, values)) return Turn::Unseen;
    begins(guard);
    return Turn::Seen;
}

void Runtime::endTyped(const Tensors& results) {
    Guard guard(lock_, std::defer_lock);
    ended(guard);
    if (!planned()) return;
    StorageList hidden;
    const Tensors plain = plainTensors(results, &hidden);
    after(plain, std::all_of(results.begin(), results.end(),
                             [](const c10::TensorImpl* tensor) { return isPlain(*tensor); }));
    for (c10::StorageImpl* const impl : hidden) bringAndPin(guard, impl, true);
}

void Runtime::failTyped() {
    Guard guard(lock_, std::defer_lock);
    ended(guard);
    failed();
}

}  // namespace hw::live::runtime

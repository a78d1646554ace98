// SPDX-License-Identifier: MIT
#include "budget_runtime.h"

#include <algorithm>
#include <string>

#include "core/graph/unseen_ops.h"
#include "extension_calls.h"
#include "guards.h"
#include "rebuild.h"

namespace hw::live::runtime {
namespace {

bool writesParameter(const profiler::native::Operator& op, Values values) {
    for (const std::size_t index : op.writes)
        for (const c10::TensorImpl* const tensor : plainTensors(values.slice(index, 1)))
            if (isParameter(*tensor)) return true;
    return false;
}

bool aliases(const c10::Argument& result) {
    return result.alias_info() != nullptr && !result.alias_info()->isWrite();
}

bool onlyViews(const c10::FunctionSchema& schema) {
    return !schema.is_mutable() && !schema.returns().empty() &&
           std::all_of(schema.returns().begin(), schema.returns().end(), &aliases);
}

const std::vector<std::uint32_t> kNone;

}  // namespace

BudgetRuntime::OpFacts::OpFacts(const profiler::native::Operator& op)
    : onlyViews(runtime::onlyViews(*op.schema)),
      collective(core::isCollective(op.name)),
      leavesEmpty(core::leavesEmpty(op.name)),
      fills(writesWhole(*op.schema)),
      hasStatistics(runtime::hasStatistics(op.name)),
      onlyFills(op.onlyFills),
      undefined(leavesBytesUndefined(op.name)),
      varies{core::isNondeterministic(op.name, false), core::isNondeterministic(op.name, true)},
      setsAll(op.name == "aten::zero_" || op.name == "aten::fill_") {}

void BudgetRuntime::Running::clear() {
    for (auto* const list : {&inputs, &missing, &locked, &written, &unread, &touched})
        list->clear();
    outputs.clear();
    made.clear();
    lookedAt.clear();
    kept.clear();
    exposed.clear();
    owned.clear();
    onTape = varies = doubtful = elsewhere = unlocked = false;
    onGpu = nullptr;
}

// --- steps

void BudgetRuntime::begin() {
    const Guard guard(lock_);
    figures_ = {};
    opsNs_ = 0;
    verifier_.beginStep();
    hopeless_ = hopeless_ && adopts_;
    divergence_.reset();
    if (!acting_) return;
    followers_.begin();
    leaveTrace();
    if (!planned_ || !kinds_.wanted()) return;
    profiler::native::OpWindow window;
    agent_.begin(&window);
    std::int64_t live = window.liveBefore;
    for (const std::size_t away : slots_.away())
        live += evictor_[static_cast<core::StorageIndex>(away)].size;
    traceStep(live);
}

bool BudgetRuntime::follow(std::int64_t kind, Boundary ending, const std::string& program,
                           std::string& why) {
    const Guard guard(lock_);
    auto read = readProgram(program, wire::kBudgetActions, why);
    if (!read) return false;
    followers_.add(kind, ending, std::move(*read));
    return true;
}

void BudgetRuntime::forward() {
    const Guard guard(lock_);
    if (!acting_) return;
    if (followers_.follows()) return followers_.forward();
    settle();
}

Boundary BudgetRuntime::boundary() {
    const Guard guard(lock_);
    if (!acting_) return Boundary::Unplanned;
    verifier_.endStep();
    exposures_.endStep();
    keepsAll_ = false;
    longestOps_ = std::max(longestOps_, figures_.ops);
    const PlanFollowers::Ended ended = followers_.ended();
    if (ended.kind >= 0) kinds_.planned(ended.kind);
    endTrace();
    settle();
    noteThrashing();
    settleDevices();
    const bool idle = figures_.evictions == 0 && figures_.recomputedOps == 0;
    return !keepsLimit_ && idle && ended.how == Boundary::Budget ? Boundary::Unplanned : ended.how;
}

void BudgetRuntime::endTrace() {
    auto trace = std::move(trace_);
    leaveTrace();
    if (!trace || trace->broken() || trace->ops() == 0) return;
    trace->finish([&](c10::StorageImpl* impl) { return wanted(impl); });
    kinds_.add(std::move(trace));
}

void BudgetRuntime::interrupt(const std::string&) {
    const Guard guard(lock_);
    if (!acting_) return;
    logReferences();
    const auto pin = [&](Storage s) {
        if (log_) log_->line("pin", s);
        evictor_.pin(static_cast<int>(s));
    };
    for (Storage s = 0; s < tape_.storages(); ++s)
        if (present(s)) pin(s);
    for (const std::size_t away : slots_.away()) {  // none of them goes for another one
        const auto s = static_cast<Storage>(away);
        if (present(s)) continue;
        if (log_) log_->line("bring", away);
        materialize(s);
        pin(s);
    }
    keepsAll_ = true;
    followers_.leave();
    if (trace_) trace_->failed();
}

/// Of what it reads and writes, nothing is seen but that it has the tensors.
void BudgetRuntime::region(const std::string& what) {
    const Guard guard(lock_);
    if (!Guards::on(GuardKind::Compiled)) return;
    regions_ += what.empty() ? -1 : 1;
    if (!what.empty())
        remark(what +
               ": what such regions read and make stays within the budget, as their code works on "
               "memory by no op");
}

void BudgetRuntime::release() {
    const Guard guard(lock_);
    if (!acting_) return;
    agent_.onShortage(nullptr);
    if (log_) log_->line("end");
    log_.reset();
    try {
        for (const std::size_t away : slots_.away()) materialize(static_cast<Storage>(away));
        settleDevices();
    } catch (const std::exception& error) {
        if (fault_.empty()) fault_ = error.what();
    }
    acting_ = false;
    followers_.clear();
    leaveTrace();
    reset();
}

void BudgetRuntime::noteThrashing() {
    if (saidThrashing_ || figures_.recomputedNs <= opsNs_) return;
    saidThrashing_ = true;
    fault_ = "thrashing: making storages again takes longer than the ops of the step themselves (" +
             std::to_string(figures_.recomputedNs / 1000000) + " ms beside " +
             std::to_string(opsNs_ / 1000000) + " ms in one step); " +
             (keepsLimit_ ? "a larger budget" : "more memory") + " would help";
}

// --- ops

void BudgetRuntime::op(const profiler::native::Passing& op, torch::jit::Stack* stack) {
    if (op.known.profiler) return letProfilerBy(op, stack);
    Guard guard(lock_);
    const std::int32_t line = lines_.here(guard);
    if (!acting_) {
        ++figures_.ops;
        guard.unlock();
        return op.handle.redispatchBoxed(op.below, stack);
    }
    if (inFlight_ != std::thread::id() && inFlight_ != std::this_thread::get_id()) {
        guard.unlock();  // a thread of the framework's that runs ops of the program side by side
        return opBeside(op, stack);
    }
    ++figures_.ops;
    throwIfCondemned();
    compact();
    running_ = &op.known;
    auto begun = spare_.empty() ? std::make_unique<Running>() : std::move(spare_.back());
    if (!spare_.empty()) spare_.pop_back();
    Running& running = *begun;
    running.line = line;
    ++underWay_;
    const std::int64_t came = agent_.now();
    const std::int64_t recomputed = figures_.recomputedNs;
    try {
        prepare(op, torch::jit::last(*stack, op.known.schema->arguments().size()), running);
    } catch (...) {
        if (log_) log_->line("broken");
        unlock(running);
        throw;
    }
    evictingNs_ = opPeak_ = opEvicted_ = 0;
    profiler::native::OpWindow window;
    if (trace_) {
        traceOp(op.known, torch::jit::last(*stack, op.known.schema->arguments().size()),
                running.inputs);
        tracing_ = true;
        agent_.begin(&window);
    }
    const std::int64_t live = trace_ ? window.liveBefore : 0;
    const bool waits =
        running.onGpu != nullptr && !keepsAll_ && (tracing_ || running.onGpu->wanted());
    inFlight_ = std::this_thread::get_id();
    guard.unlock();
    if (waits) streams_.wait();
    const std::int64_t began = agent_.now();
    try {
        op.handle.redispatchBoxed(op.below, stack);
    } catch (...) {
        guard.lock();
        inFlight_ = std::thread::id();
        failed(running);
        throw;
    }
    if (waits) streams_.wait();
    const std::int64_t ended = agent_.now();
    guard.lock();
    inFlight_ = std::thread::id();
    const std::int64_t measured = std::max<std::int64_t>(1, ended - began - evictingNs_);
    if (waits) running.onGpu->add(measured);
    const std::int64_t cost = running.onGpu != nullptr ? running.onGpu->nsOr(measured) : measured;
    const Values results = torch::jit::last(*stack, op.known.schema->returns().size());
    if (std::exchange(tracing_, false)) {
        agent_.end(&window);
        opPeak_ = std::max(opPeak_, window.peak + opEvicted_);
        trace_->end(results, cost, opPeak_ - live);
    }
    opsNs_ += cost;
    finish(results, cost, running);
    figures_.runtimeNs +=
        agent_.now() - ended + began - came + evictingNs_ - (figures_.recomputedNs - recomputed);
    running.clear();
    spare_.push_back(std::move(begun));
}

const BudgetRuntime::OpFacts& BudgetRuntime::factsOf(const profiler::native::Operator& op) {
    const auto known = facts_.find(&op);
    return known != facts_.end() ? known->second : facts_.emplace(&op, OpFacts(op)).first->second;
}

/// What it reads is there and stays, and what it is about to write is no more than that.
void BudgetRuntime::prepare(const profiler::native::Passing& op, Values values, Running& running) {
    takeReleased();
    StorageList hidden;
    const Tensors tensors = plainTensors(values, &hidden);
    if (!hidden.empty()) bringHidden(op.known, values, hidden);
    for (const c10::TensorImpl* const tensor : tensors)
        running.inputs.push_back(known(plainStorage(*tensor)));
    ++search_;
    for (const std::size_t index : op.known.writes)
        for (const c10::TensorImpl* const tensor : plainTensors(values.slice(index, 1)))
            if (const Storage s = known(plainStorage(*tensor)); isNew(s))
                running.written.push_back(s);
    if (followers_.follows()) {
        const ProgramOp* const planned = followers_.begin(
            *op.known.schema, tensors, running.inputs,
            [&](Storage s) { return evictor_[static_cast<core::StorageIndex>(s)].size; });
        if (!followers_.follows() && (divergence_ = followers_.left()))
            divergence_->found = op.known.name;
        if (trace_ && followers_.certain()) leaveTrace();
        if (planned != nullptr) perform(planned->before);
    }
    const OpFacts& facts = factsOf(op.known);
    running.facts = &facts;
    unlocks_ = 0;
    if (log_) log_->line("op", op.known.name, facts.onlyViews ? 1 : 0, running.inputs);
    if (facts.onlyViews) return;
    bring(running);
    if (verifier_.queued() && writesParameter(op.known, values)) settleDevices();
    const c10::Device device = deviceOf(tensors, toldDevice(values));
    if (device.is_cuda()) followStream(device, op.known, tensors, running);
    for (const Storage s : running.inputs) {
        const bool filled =
            !unfilled_[s] || slots_[s].unread || (facts.fills && contains(running.written, s));
        if (!filled || facts.collective) {
            aboutToChange({s});
            keepAsItIs(s);  // whoever filled it called no op
        } else if (unfilled_[s] && tape_.canMake(s)) {
            if (log_) log_->line("unpin", s);
            evictor_.unpin(s);
        }
        unfilled_[s] = false;
    }
    if (facts.hasStatistics) noteStatistics(op.known, values, running);
    findUnseenWrites(tensors, running);
    if (!running.written.empty()) aboutToChange(running.written);
    running.onTape = (device.is_cpu() || (device.is_cuda() && !running.elsewhere)) &&
                     mayRunAgain(op, values, tensors, running);
    running.varies = running.onTape && facts.varies.on(device.type());
}

/// The op runs on a GPU. What it reads there on another stream than recomputations stays, as nobody
/// knows here when that stream is done with it.
void BudgetRuntime::followStream(c10::Device device, const profiler::native::Operator& op,
                                 const Tensors& tensors, Running& running) {
    running.onGpu = &costs_.of(op, tensors);
    static_cast<void>(streams_.follow(device, anyOnCuda(tensors), 0));
    running.elsewhere = !streams_.any() || streams_.elsewhere();
    if (!running.elsewhere) return;
    for (const Storage s : running.inputs) keepAsItIs(s);
}

/// Whether it is worth while and possible to keep how to run the op again; then it is kept.
bool BudgetRuntime::mayRunAgain(const profiler::native::Passing& op, Values values,
                                const Tensors& tensors, Running& running) {
    if (keepsAll_ || op.known.adopts || running.facts->collective || regions_ > 0) return false;
    const bool foreign = op.known.foreign() && Guards::on(GuardKind::Foreign);
    if ((foreign && op.known.python()) || keptOps_.has(op.known.name, figures_.ops - 1))
        return false;
    if (exposures_.changeOnGpu(tensors) || isUncheckable(op, running.facts->undefined))
        return false;
    const bool leaves = !running.unread.empty();
    if (leaves && !op.known.writes.empty()) running.written = running.unread;
    const std::vector<Storage>& written = running.written;
    if (!leaves && !written.empty() && (written.size() > 1 || !tape_.canMake(written.front())))
        return false;
    TapeOp& kept = tape_.next();
    const profiler::native::Pause pause(agent_);
    const bool plain = kept.call.keep(op.handle, values, tensors,
                                      {running.inputs.size(), op.known.random || foreign, leaves});
    kept.number = figures_.ops - 1;
    kept.line = running.line;
    if (!plain) kept.call.clear();
    return plain;
}

void BudgetRuntime::finish(Values results, std::int64_t cost, Running& running) {
    planners::DtrState& state = evictor_.state();
    if (regions_ > 0)
        for (const Storage s : running.inputs) keepAsItIs(s);
    if (!allPlain(results))  // they may look at the bytes in a way of their own
        for (const Storage s : running.inputs) keepAsItIs(s);
    std::vector<Output>& outputs = running.outputs;
    std::vector<Storage>& touched = running.touched;
    std::vector<core::StorageIndex>& made = running.made;
    bool lists = false;
    ++search_;
    StorageList hidden;
    for (const c10::TensorImpl* const tensor : plainTensors(results, &hidden)) {
        lists = lists || listsIntegers(*tensor);
        c10::StorageImpl* const impl = plainStorage(*tensor);
        const std::int64_t there = slots_.find(impl);
        const Storage s = there >= 0 ? static_cast<Storage>(there) : add(impl);
        outputs.push_back({s, there < 0, 0, static_cast<std::int64_t>(impl->nbytes())});
        if (there < 0) {
            made.push_back(static_cast<core::StorageIndex>(s));
            slots_[s].unread = !running.facts->leavesEmpty;
            unfilled_[s] = running.facts->leavesEmpty || running.facts->onlyFills || inExtension();
            slots_[s].uncompared =
                running.facts->undefined || !coversStorage(*tensor) || running.varies;
        }
        if (there >= 0 && running.facts->fills && contains(running.written, s) &&
            coversStorage(*tensor))
            slots_[s].uncompared = false;
        if (isNew(s)) touched.push_back(s);
    }
    if (!made.empty() && outputs.front().makes)  // the pool gets it after the others
        std::rotate(made.begin(), made.begin() + 1, made.end());
    if (running.onTape && !running.exposed.empty()) running.onTape = keepSources(running);
    if (!running.lookedAt.empty() && exposures_.changed()) running.onTape = false;
    if (running.onTape)
        for (Call::Source& source : running.lookedAt)
            tape_.next().call.sources().push_back(std::move(source));
    if (log_) logEnd(outputs, cost, running);
    const std::size_t ofOutputs = touched.size();
    for (const Storage s : running.written)
        if (isNew(s)) touched.push_back(s);
    for (const Storage s : touched) evictor_.announce(static_cast<core::StorageIndex>(s), cost);
    const bool updates = !running.unread.empty();
    if (!made.empty() && !running.written.empty() && !updates) running.onTape = false;
    for (const Storage s : running.written)  // it may have been given up while the op ran
        if (!updates && !tape_.canMake(s)) running.onTape = false;
    for (const Storage input : running.inputs) {
        if (!running.onTape) break;  // what it makes and writes stays: no score asks for it
        if (!running.readsAgain(input)) continue;
        for (const Output& output : outputs) evictor_.link(input, output.storage);
        for (std::size_t k = ofOutputs; k < touched.size(); ++k) evictor_.link(input, touched[k]);
    }
    state.clock += cost;
    for (const core::StorageIndex s : made) state.storages[s].material = true;
    evictor_.materialized(made);

    for (const Storage s : running.written) {
        Slot& slot = slots_[s];
        slot.version = ++slot.written;
        if (running.varies) slot.uncompared = true;
        if (slot.exposed) exposures_.forgetReads(slot.key());
        needed_[s] = false;
        const StoragePointer impl = slot.lock();
        const bool resized = impl && static_cast<std::int64_t>(impl->nbytes()) != evictor_[s].size;
        if (resized && trace_) trace_->untold(impl.get());
        if (!running.onTape || updates || resized) keepAsItIs(s);
    }
    const bool changes = !made.empty() || (!running.written.empty() && !updates);
    if (running.onTape && changes) {
        running.kept.clear();
        const bool writes = !running.written.empty() && !updates;
        for (const Storage s : running.inputs) {
            const bool own = writes && s == running.written.front();
            running.kept.push_back(
                {s, 0, running.readsAgain(s) ? slots_[s].written - (own ? 1 : 0) : kUnread});
        }
        tape_.next().cost = cost;
        tape_.next().varies = running.varies;
        tape_.add(running.kept, outputs, writes ? running.written : kNone);
        for (const Input& input : running.kept)
            if (input.version != kUnread && !tape_.canMake(input.storage) &&
                !watched_[input.storage])
                hold(input.storage);
    }
    for (const core::StorageIndex s : made) {
        const auto storage = static_cast<Storage>(s);
        const StoragePointer impl = slots_[storage].lock();
        if (impl && evictable(*impl)) watch(storage);
        if (!running.onTape || !impl || !evictable(*impl)) keepAsItIs(storage);
        if (running.doubtful || running.varies) doubt(storage);
        if (!unfilled_[storage]) continue;
        if (log_) log_->line("pin", s);
        evictor_.pin(s);
    }
    if (lists)
        for (const c10::TensorImpl* const tensor : plainTensors(results))
            if (listsIntegers(*tensor)) {
                const Storage s = known(plainStorage(*tensor));
                if (!present(s)) {  // a view of what was away has brought nothing
                    if (log_) log_->line("bring", s);
                    materialize(s);
                }
                keepAsItIs(s);
            }
    noteBorn(running);
    for (c10::StorageImpl* const impl : hidden) bring(impl, true);
    unlock(running);
    if (log_) log_->line("done");
    for (const Output& output : outputs) state.storages[output.storage].lastAccess = state.clock;
    if (!followers_.follows()) return;
    if (const ProgramOp* const planned = followers_.end(outputs)) perform(planned->after);
    if (!followers_.follows() && (divergence_ = followers_.left()))
        divergence_->found = running_->name;
}

/// Nobody knows what it has written.
void BudgetRuntime::failed(Running& running) {
    if (log_) log_->line("failed", running.written);
    for (const Storage s : running.written) {
        ++slots_[s].written;
        slots_[s].version = slots_[s].written;
        keepAsItIs(s);
    }
    unlock(running);
    if (log_) log_->line("done");
    tracing_ = false;
    if (trace_) trace_->failed();
    followers_.failed();
}

void BudgetRuntime::unlock(Running& running) {
    for (const Storage s : running.locked) evictor_.unlock(s);
    running.locked.clear();
    --underWay_;
}

}  // namespace hw::live::runtime

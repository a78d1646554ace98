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
    const OpTimes times = runPrepared(op, stack, running, guard);
    opsNs_ += times.cost;
    finish(torch::jit::last(*stack, op.known.schema->returns().size()), times.cost, running);
    figures_.runtimeNs += agent_.now() - times.ended + times.began - came + evictingNs_ -
                          (figures_.recomputedNs - recomputed);
    running.clear();
    spare_.push_back(std::move(begun));
}

/// The op runs, without the lock, on what is there for it.
BudgetRuntime::OpTimes BudgetRuntime::runPrepared(const profiler::native::Passing& op,
                                                  torch::jit::Stack* stack, Running& running,
                                                  Guard& guard) {
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
    OpTimes times;
    times.began = agent_.now();
    try {
        op.handle.redispatchBoxed(op.below, stack);
    } catch (...) {
        guard.lock();
        inFlight_ = std::thread::id();
        failed(running);
        throw;
    }
    if (waits) streams_.wait();
    times.ended = agent_.now();
    guard.lock();
    inFlight_ = std::thread::id();
    const std::int64_t measured =
        std::max<std::int64_t>(1, times.ended - times.began - evictingNs_);
    if (waits) running.onGpu->add(measured);
    times.cost = running.onGpu != nullptr ? running.onGpu->nsOr(measured) : measured;
    if (std::exchange(tracing_, false)) {
        agent_.end(&window);
        opPeak_ = std::max(opPeak_, window.peak + opEvicted_);
        trace_->end(torch::jit::last(*stack, op.known.schema->returns().size()), times.cost,
                    opPeak_ - live);
    }
    return times;
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
        const ProgramOp* const planned =
            followers_.begin(*op.known.schema, numbered(tensors, running.inputs));
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
            keepAsItIs(s);  // it was filled by no op
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

/// The op runs on a GPU. What it reads there on another stream than recomputations stays, as it
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

/// What it has written is not known.
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

// SPDX-License-Identifier: MIT
// What an op has made and written, within a budget: DTR hears of it, and the tape keeps how to
// recompute it.
#include <algorithm>

#include "budget_runtime.h"
#include "extension_calls.h"

namespace hw::live::runtime {
namespace {

const std::vector<std::uint32_t> kNothing;

}  // namespace

void BudgetRuntime::finish(Values results, std::int64_t cost, Running& running) {
    if (regions_ > 0 || !allPlain(results))  // they may look at the bytes in a way of their own
        for (const Storage s : running.inputs) keepAsItIs(s);
    StorageList hidden;
    const Tensors plain = plainTensors(results, &hidden);
    noteResults(plain, running);
    decideTape(running);
    link(cost, running);
    planners::DtrState& state = evictor_.state();
    state.clock += cost;
    for (const core::StorageIndex s : running.made) state.storages[s].material = true;
    evictor_.materialized(running.made);
    noteWritten(running);
    if (running.onTape && (!running.made.empty() || running.writes())) addToTape(cost, running);
    settleMade(running);
    keepLists(plain);
    noteBorn(running);
    for (c10::StorageImpl* const impl : hidden) bring(impl, true);
    unlock(running);
    if (log_) log_->line("done");
    for (const Output& output : running.outputs)
        state.storages[output.storage].lastAccess = state.clock;
    endFollowed(plain, running.outputs);
}

/// Which storages its results lie in, and which of them are new.
void BudgetRuntime::noteResults(const Tensors& results, Running& running) {
    ++search_;
    for (const c10::TensorImpl* const tensor : results) {
        c10::StorageImpl* const impl = plainStorage(*tensor);
        const std::int64_t there = slots_.find(impl);
        const Storage s = there >= 0 ? static_cast<Storage>(there) : add(impl);
        running.outputs.push_back({s, there < 0, 0, static_cast<std::int64_t>(impl->nbytes())});
        if (there < 0) {
            running.made.push_back(static_cast<core::StorageIndex>(s));
            slots_[s].unread = !running.facts->leavesEmpty;
            unfilled_[s] = running.facts->leavesEmpty || running.facts->onlyFills || inExtension();
            slots_[s].uncompared =
                running.facts->undefined || !coversStorage(*tensor) || running.varies;
        }
        if (there >= 0 && running.facts->fills && contains(running.written, s) &&
            coversStorage(*tensor))
            slots_[s].uncompared = false;
        if (isNew(s)) running.touched.push_back(s);
    }
    if (!running.made.empty() &&
        running.outputs.front().makes)  // the pool gets it after the others
        std::rotate(running.made.begin(), running.made.begin() + 1, running.made.end());
}

/// Whether it can run again: what it looked at is as it was, or it has copies.
void BudgetRuntime::decideTape(Running& running) {
    if (running.onTape && !running.exposed.empty()) running.onTape = keepSources(running);
    if (!running.lookedAt.empty() && exposures_.changed()) running.onTape = false;
    if (running.onTape)
        for (Call::Source& source : running.lookedAt)
            tape_.next().call.sources().push_back(std::move(source));
}

/// DTR hears of the op, and of what was made from what.
void BudgetRuntime::link(std::int64_t cost, Running& running) {
    if (log_) logEnd(running.outputs, cost, running);
    std::vector<Storage>& touched = running.touched;
    const std::size_t ofOutputs = touched.size();
    for (const Storage s : running.written)
        if (isNew(s)) touched.push_back(s);
    for (const Storage s : touched) evictor_.announce(static_cast<core::StorageIndex>(s), cost);
    if (!running.made.empty() && running.writes()) running.onTape = false;
    for (const Storage s : running.written)  // it may have been given up while the op ran
        if (!running.updates() && !tape_.canMake(s)) running.onTape = false;
    for (const Storage input : running.inputs) {
        if (!running.onTape) break;  // what it makes and writes stays: no score asks for it
        if (!running.readsAgain(input)) continue;
        for (const Output& output : running.outputs) evictor_.link(input, output.storage);
        for (std::size_t k = ofOutputs; k < touched.size(); ++k) evictor_.link(input, touched[k]);
    }
}

/// What an op has made larger or smaller lies elsewhere, and nothing makes it again.
void BudgetRuntime::noteResized(Running& running) {
    for (const Storage s : running.written) {
        const StoragePointer impl = slots_[s].lock();
        if (!impl || static_cast<std::int64_t>(impl->nbytes()) == evictor_[s].size) continue;
        running.onTape = false;
        if (trace_) trace_->untold(impl.get());
        watch(s);
    }
}

void BudgetRuntime::noteWritten(Running& running) {
    noteResized(running);
    for (const Storage s : running.written) {
        Slot& slot = slots_[s];
        slot.version = ++slot.written;
        if (running.varies) slot.uncompared = true;
        if (slot.exposed) exposures_.forgetReads(slot.key());
        needed_[s] = false;
        if (!running.onTape || running.updates()) keepAsItIs(s);
    }
}

/// What it reads is held as long as something may be made from it.
void BudgetRuntime::addToTape(std::int64_t cost, Running& running) {
    running.kept.clear();
    for (const Storage s : running.inputs) {
        const bool own = running.writes() && s == running.written.front();
        running.kept.push_back(
            {s, 0, running.readsAgain(s) ? slots_[s].written - (own ? 1 : 0) : kUnread});
    }
    tape_.next().cost = cost;
    tape_.next().varies = running.varies;
    tape_.add(running.kept, running.outputs, running.writes() ? running.written : kNothing);
    for (const Input& input : running.kept)
        if (input.version != kUnread && !tape_.canMake(input.storage) && !watched_[input.storage])
            hold(input.storage);
}

void BudgetRuntime::settleMade(Running& running) {
    for (const core::StorageIndex s : running.made) {
        const auto storage = static_cast<Storage>(s);
        const StoragePointer impl = slots_[storage].lock();
        if (impl && evictable(*impl)) watch(storage);
        if (!running.onTape || !impl || !evictable(*impl)) keepAsItIs(storage);
        if (running.doubtful || running.varies) doubt(storage);
        if (!unfilled_[storage]) continue;
        if (log_) log_->line("pin", s);
        evictor_.pin(s);
    }
}

/// Integers that other ops read themselves, see listsIntegers().
void BudgetRuntime::keepLists(const Tensors& results) {
    for (const c10::TensorImpl* const tensor : results) {
        if (!listsIntegers(*tensor)) continue;
        const Storage s = known(plainStorage(*tensor));
        if (!present(s)) {  // a view of what was away has brought nothing
            if (log_) log_->line("bring", s);
            materialize(s);
        }
        keepAsItIs(s);
    }
}

/// An op's tensors as plans look at them.
NumberedTensors BudgetRuntime::numbered(const Tensors& tensors,
                                        const std::vector<Storage>& storages) const {
    NumberedTensors numbers;
    for (std::size_t k = 0; k < tensors.size(); ++k) {
        numbers.forms.push_back(formOf(*tensors[k]));
        numbers.storages.push_back(storages[k]);
        numbers.bytesOf.push_back(evictor_[static_cast<core::StorageIndex>(storages[k])].size);
        numbers.made.push_back(false);
    }
    return numbers;
}

/// What a plan says after the op.
void BudgetRuntime::endFollowed(const Tensors& results, const std::vector<Output>& outputs) {
    if (!followers_.follows()) return;
    std::vector<Storage> storages;
    for (const Output& output : outputs) storages.push_back(output.storage);
    NumberedTensors numbers = numbered(results, storages);
    for (std::size_t j = 0; j < outputs.size(); ++j) {
        numbers.bytesOf[j] = outputs[j].bytes;
        numbers.made[j] = outputs[j].makes;
    }
    if (const ProgramOp* const planned = followers_.end(numbers)) perform(planned->after);
    if (!followers_.follows() && (divergence_ = followers_.left()))
        divergence_->found = running_->name;
}

}  // namespace hw::live::runtime

// SPDX-License-Identifier: MIT
// Who reads or writes storages beside the ops of the thread that trains, within a budget: other
// threads, and code past the dispatcher.
#include "budget_runtime.h"
#include "guards.h"

namespace hw::live::runtime {

void BudgetRuntime::opBeside(const profiler::native::Passing& op, torch::jit::Stack* stack) {
    {
        const Guard guard(lock_);
        if (acting_) {
            const Values values = torch::jit::last(*stack, op.known.schema->arguments().size());
            StorageList hidden;
            const Tensors tensors = plainTensors(values, &hidden);
            bringHidden(op.known, values, hidden);
            std::vector<Storage> written;
            for (const std::size_t index : op.known.writes)
                for (const c10::TensorImpl* const tensor : plainTensors(values.slice(index, 1)))
                    if (const auto s = slots_.find(plainStorage(*tensor)); s >= 0)
                        written.push_back(static_cast<Storage>(s));
            for (const c10::TensorImpl* const tensor : tensors) bring(plainStorage(*tensor), true);
            aboutToChange(written);
            if (log_) log_->line("beside", written);
            for (const Storage s : written) {
                slots_[s].version = ++slots_[s].written;
                keepAsItIs(s);
            }
        }
    }
    op.handle.redispatchBoxed(op.below, stack);
}

void BudgetRuntime::change(c10::StorageImpl* storage) {
    const Guard guard(lock_);
    exposures_.forgetReads(storage);
    const std::int64_t there = acting_ ? slots_.find(storage) : -1;
    if (there < 0) return;
    const auto s = static_cast<Storage>(there);
    logReferences();
    if (!present(s)) {
        if (log_) log_->line("bring", s);
        materialize(s);
    }
    aboutToChange({s});
    if (log_) log_->line("beside", std::vector<Storage>{s});
    slots_[s].version = ++slots_[s].written;
    keepAsItIs(s);
    if (trace_) trace_->failed();
}

void BudgetRuntime::touch(const c10::TensorImpl& tensor, bool stays) {
    const Guard guard(lock_);
    if (!acting_) return;
    StorageList storages;
    addStorages(tensor, storages);
    for (c10::StorageImpl* const impl : storages) {
        bring(impl, stays);
        if (stays && Guards::on(GuardKind::Exposures)) expose(impl);
    }
}

/// Its address goes out, and its bytes may change unseen from now on.
void BudgetRuntime::expose(c10::StorageImpl* impl) {
    exposures_.expose(impl);
    const std::int64_t there = slots_.find(impl);
    if (there < 0) return;
    const auto s = static_cast<Storage>(there);
    if (exposures_.changed() || log_)
        aboutToChange({s});
    else if (!exposures_.trusted(false))
        doubtReaders(s);
    keepAsItIs(s);  // its bytes need not be those that ops have made
    slots_[s].exposed = true;
}

void BudgetRuntime::hand(const c10::TensorImpl& tensor) {
    const Guard guard(lock_);
    if (!acting_) return;
    StorageList storages;
    addStorages(tensor, storages);
    for (c10::StorageImpl* const impl : storages) bring(impl, true);
}

/// Its bytes are there, for code past the dispatcher. `pins`: and stay.
void BudgetRuntime::bring(c10::StorageImpl* impl, bool pins) {
    const std::int64_t there = slots_.find(impl);
    if (there < 0) return;
    const auto s = static_cast<Storage>(there);
    const bool away = !present(s);
    logReferences();
    if (log_ && away) log_->line("bring", s);
    if (away) materialize(s);
    if (!pins && !away) return;
    if (log_) log_->line("pin", s);
    evictor_.pin(s);
}

/// What an op reads or writes through tensors that are not plain: no plan and no tape has it.
void BudgetRuntime::bringHidden(const profiler::native::Operator& op, Values values,
                                const StorageList& hidden) {
    for (c10::StorageImpl* const impl : hidden) bring(impl, true);
    StorageList written;
    for (const std::size_t index : op.writes) plainTensors(values.slice(index, 1), &written);
    for (c10::StorageImpl* const impl : written)
        if (const std::int64_t there = slots_.find(impl); there >= 0)
            unseenWrite(static_cast<Storage>(there));
}

}  // namespace hw::live::runtime

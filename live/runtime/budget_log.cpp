// SPDX-License-Identifier: MIT
// What a program under a budget writes down, so that its decisions can be replayed.
#include "budget_runtime.h"

namespace hw::live::runtime {

/// What the program, and we, have let go of since the last time.
void BudgetRuntime::logReferences() {
    if (!log_) return;
    for (Storage s = 0; s < tape_.storages(); ++s) {
        if (!wanted(s) && log_->tellsUnwanted(s)) log_->line("unwanted", s);
        if (evictor_[static_cast<core::StorageIndex>(s)].material && !slots_[s].alive() &&
            log_->tellsLost(s))
            log_->line("lost", s);
    }
}

void BudgetRuntime::logEnd(const std::vector<Output>& outputs, std::int64_t cost,
                           const Running& running) {
    std::vector<Storage> reads;
    std::vector<std::int64_t> results;
    for (const Storage s : running.inputs)
        if (running.readsAgain(s)) reads.push_back(s);
    for (const Output& output : outputs)
        results.insert(results.end(), {output.storage, output.makes ? 1 : 0, output.bytes});
    log_->line("end", cost, reads, results, running.written);
}

/// Decisions begin anew, with what is kept of those before.
void BudgetRuntime::logStretch(const std::vector<Kept>& kept) {
    log_->renumber();
    log_->line("stretch", evictor_.state().clock, atAnyPrice_ ? 1 : 0);
    for (std::size_t i = 0; i < tape_.size(); ++i) {
        const TapeOp& op = tape_[i];
        std::vector<Storage> reads;
        std::vector<std::int64_t> results;
        for (const Input& input : op.inputs)
            if (input.version != kUnread) reads.push_back(input.storage);
        for (const Output& output : op.outputs)
            if (output.storage != kNobody)
                results.insert(results.end(), {output.storage, output.makes ? 1 : 0, output.bytes});
        log_->line("tape", op.cost, reads, results, op.writes.vec());
    }
    for (Storage s = 0; s < kept.size(); ++s)
        log_->line("kept", s, kept[s].state.size, kept[s].state.compute, kept[s].state.lastAccess,
                   kept[s].state.material ? 0 : 1, kept[s].state.pinned ? 1 : 0,
                   kept[s].state.deferred ? 1 : 0, kept[s].needed ? 1 : 0, kept[s].made ? 1 : 0);
    log_->flush();
}

}  // namespace hw::live::runtime

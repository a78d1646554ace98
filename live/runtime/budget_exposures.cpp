// SPDX-License-Identifier: MIT
// Bytes that change by no op, under a budget: what was made from them, and what was recomputed and
// has other bytes all the same.
#include <utility>

#include "budget_runtime.h"
#include "extension_calls.h"
#include "guards.h"

namespace hw::live::runtime {
/// Its bytes are no longer those of which it is known how they were made.
void BudgetRuntime::unseenWrite(Storage storage) {
    aboutToChange({storage});
    if (log_) log_->line("beside", std::vector<Storage>{storage});
    slots_[storage].version = ++slots_[storage].written;
    keepAsItIs(storage);
    slots_[storage].exposed = true;
    if (const StoragePointer impl = slots_[storage].lock()) exposures_.expose(impl.get());
}

/// Of what the op reads: storages that other code has filled since an op made them, and those whose
/// bytes may change after it.
void BudgetRuntime::findUnseenWrites(const Tensors& tensors, Running& running) {
    if (!Guards::on(GuardKind::Exposures)) return;
    for (std::size_t k = 0; k < tensors.size(); ++k) {
        const Storage s = running.inputs[k];
        Slot& slot = slots_[s];
        if (slot.born.taken() && slot.born.version == slot.written && present(s)) {
            const StoragePointer impl = slot.lock();
            if (bytesOf(*impl) != nullptr &&
                !verifier_.isSame(slot.born, bytesOf(*impl),
                                  static_cast<std::int64_t>(impl->nbytes())))
                unseenWrite(s);
            if (!inExtension()) slots_[s].born = Checksum();
        }
        if (contains(running.unread, s)) continue;
        if (slots_[s].exposed && exposures_.mayChange(*tensors[k]))
            running.exposed.push_back(exposures_.sourceOf(*tensors[k], k));
        else if (exposures_.isLookedAt(*tensors[k]) && !contains(running.written, s))
            running.lookedAt.push_back(exposures_.sourceOf(*tensors[k], k));
    }
}

/// Batch norm updates its running statistics in training, which its schema does not say: what other
/// ops have made from them is there before and stays. When it runs again it leaves them out.
void BudgetRuntime::noteStatistics(const profiler::native::Operator& op, Values values,
                                   Running& running) {
    if (!leavesStatistics(*op.schema, values)) return;
    const bool updates = updatesStatistics(*op.schema, values);
    std::vector<Storage> read;
    for (const c10::TensorImpl* const statistics : statisticsOf(*op.schema, values)) {
        const Storage s = known(plainStorage(*statistics));
        running.unread.push_back(s);
        if (!updates) continue;
        if (slots_[s].exposed) exposures_.forgetReads(slots_[s].key());
        if (Guards::on(GuardKind::Exposures) && !tape_.readers(s).empty()) read.push_back(s);
    }
    if (!read.empty()) aboutToChange(read);
}

/// An op on bytes that may change unseen is about to be kept on the tape. Where they are trusted it
/// reads them again; else it gets a copy, if that is worth while. What is made otherwise goes last
/// of all, as long as such bytes have not been seen to change. False: it does not run again.
bool BudgetRuntime::keepSources(Running& running) {
    Call& call = tape_.next().call;
    std::int64_t made = 0, copied = 0;
    for (const Output& output : running.outputs) made += output.makes ? output.bytes : 0;
    const auto storageOf = [&](const Call::Source& source) {
        return slots_[running.inputs[static_cast<std::size_t>(source.input)]].lock();
    };
    const bool before = exposures_.changed();
    for (const Call::Source& source : running.exposed) {
        exposures_.read(storageOf(source).get(), source);
        copied += source.bytes;
    }
    if (exposures_.changed() && !before) loseTrust();
    call.sources() = std::exchange(running.exposed, {});
    if (exposures_.trusted(false) && copied <= kMostRead * made) return true;
    // The simulation that replays a log of decisions knows no copies, and nothing that goes last.
    if (!log_ && (2 * copied <= made || copied <= kSmallCopy)) try {
            for (Call::Source& source : call.sources())
                source.copy = Exposures::copyOf(*storageOf(source), source);
            for (const Call::Source& source : call.sources())
                running.owned.push_back(running.inputs[static_cast<std::size_t>(source.input)]);
            return true;
        } catch (const c10::Error&) {  // there is no room for it
            for (Call::Source& source : call.sources()) source.copy.reset();
        }
    running.doubtful = !log_ && !exposures_.changed() && copied <= kMostRead * made;
    if (!running.doubtful) call.clear();
    return running.doubtful;
}

void BudgetRuntime::doubt(Storage storage) {
    evictor_.defer(static_cast<core::StorageIndex>(storage));
    doubtful_.push_back(storage);
}

/// What was made from a storage whose address goes out.
void BudgetRuntime::doubtReaders(Storage source) {
    std::vector<Storage> made;
    for (const std::uint32_t op : tape_.readers(source)) {
        for (const Output& output : tape_[op].outputs)
            if (output.makes) made.push_back(output.storage);
        for (const std::uint32_t written : tape_[op].writes) made.push_back(written);
    }
    for (const Storage s : made) {
        if (!wanted(s)) continue;
        if (!present(s)) materialize(s);
        doubt(s);
    }
}

/// Such bytes have changed: what is there stays.
void BudgetRuntime::loseTrust() {
    for (const Storage s : std::exchange(doubtful_, {}))
        if (tape_.canMake(s) && present(s)) keepAsItIs(s);
}

/// What an op that only fills has made, other code often fills after it; and an extension, any.
void BudgetRuntime::noteBorn(const Running& running) {
    const bool fills = running.facts->onlyFills || inExtension();
    if (!fills && !running.facts->setsAll) return;
    const auto note = [&](Storage s) {
        const StoragePointer impl = slots_[s].lock();
        if (!impl || impl->device_type() != c10::DeviceType::CPU || bytesOf(*impl) == nullptr)
            return;
        slots_[s].born = verifier_.whole(bytesOf(*impl), static_cast<std::int64_t>(impl->nbytes()));
        slots_[s].born.version = slots_[s].written;
    };
    if (fills && !running.facts->leavesEmpty)
        for (const Output& output : running.outputs)
            if (output.makes) note(output.storage);
    if (running.facts->setsAll)
        for (const Storage s : running.written)
            if (made_[s]) note(s);
}

Mismatch BudgetRuntime::mismatchOf(const TapeOp& op) const {
    Mismatch mismatch;
    mismatch.op = op.number;
    mismatch.name = op.call.name();
    mismatch.layer = place_.path(kinds_.layerOf(op.number, mismatch.name));
    mismatch.line = lines_[op.line];
    return mismatch;
}

/// An op is about to run again: what it reads is what it was; else the program ends.
void BudgetRuntime::verifySources(const TapeOp& op) {
    const auto find = [&](const Input& input) { return slots_[input.storage].lock(); };
    if (!op.call.changedSource(verifier_, op.inputs, find)) return;
    Mismatch mismatch = mismatchOf(op);
    for (const Output& output : op.outputs) mismatch.bytes += output.makes ? output.bytes : 0;
    mismatch.kind = MismatchKind::UnseenWriter;
    condemn(std::move(mismatch));
}

/// Whether what it has just recomputed may be other bytes: it is not deterministic, or has read
/// such ones.
bool BudgetRuntime::noteVaried(const TapeOp& op) {
    const bool varies =
        op.varies || std::any_of(op.inputs.begin(), op.inputs.end(), [&](const Input& input) {
            return input.version != kUnread && slots_[input.storage].varied;
        });
    if (varies) noteVarying(op.call.name(), streams_.any());
    return varies;
}

/// What the op has just recomputed is what was dropped; else the program ends.
void BudgetRuntime::verifyRecomputed(const TapeOp& op) {
    const auto wrong = slots_.takeMismatch();
    if (!wrong && !verifier_.unattributed()) return;
    Mismatch mismatch = mismatchOf(op);
    if (!wrong) {
        mismatch.kind = slots_.likelyKind(op.call, op.inputs);
        return verifier_.attribute(mismatch);
    }
    mismatch.bytes = evictor_[static_cast<core::StorageIndex>(*wrong)].size;
    const auto find = [&](const Input& input) { return slots_[input.storage].lock(); };
    if (op.call.changedSource(verifier_, op.inputs, find))
        mismatch.kind = MismatchKind::UnseenWriter;
    else if (op.call.foreign())
        mismatch.kind = MismatchKind::HiddenState;
    else if (op.writes.empty() && !op.call.repeats(agent_, op.inputs, find))
        mismatch.kind = MismatchKind::NotDeterministic;
    condemn(std::move(mismatch));
}

}  // namespace hw::live::runtime

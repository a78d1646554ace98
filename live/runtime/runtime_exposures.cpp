// SPDX-License-Identifier: MIT
// What a plan must not rely on: ops that may not run twice, bytes that change by no op, and what a
// session says of an op. And what was recomputed and has other bytes all the same.
#include <algorithm>
#include <utility>

#include "extension_calls.h"
#include "guards.h"
#include "runtime.h"

namespace hw::live::runtime {
/// What an op writes is taken from the framework's schema: a session may say less, and a plan that
/// was made for it recomputes from other versions. Then the plan is left for good.
bool Runtime::agreesWithSchema(const profiler::native::Operator& known, Values values) {
    ProgramOp& planned = program().ops[position_];
    if (std::exchange(planned.agrees, true)) return true;
    for (const std::size_t index : known.writes)
        for (const c10::TensorImpl* const tensor : plainTensors(values.slice(index, 1))) {
            const std::int64_t storage = slots_.find(plainStorage(*tensor));
            const auto& writes = planned.writes;
            if (storage < 0 || std::find(writes.begin(), writes.end(), storage) != writes.end())
                continue;
            const std::string name = program().fullName(planned);
            diverge(name + " writes what the session says it does not");
            restoreForGood("the session says that " + name +
                           " does not write one of its arguments, and torch says that it does; "
                           "record the program again");
            return false;
        }
    return true;
}

/// Nothing that the op makes or writes has a later writer.
bool Runtime::isLastToMake(const ProgramOp& op) const {
    const auto last = [&](std::uint32_t storage) {
        return program().storages[storage].chain.back() == position_;
    };
    for (const Output& output : op.outputs)
        if (output.makes && !last(output.storage)) return false;
    return std::all_of(op.writes.begin(), op.writes.end(), last);
}

/// Keeps how to run the op again, or notes that what it makes stays. False: the plan is left.
bool Runtime::keepCall(const profiler::native::Passing& op, const Tensors& tensors,
                       Values arguments) {
    const ProgramOp& planned = program().ops[position_];
    const std::string name = program().fullName(planned);
    const bool foreign = op.known.foreign() && Guards::on(GuardKind::Foreign);
    unkept_ = (foreign && op.known.python()) || isUncheckable(op, planned.undefined) ||
              keptOps_.has(op.known.name, static_cast<std::int64_t>(position_));
    const bool leaves = leavesStatistics(*op.known.schema, arguments);
    if (!unkept_) {
        kept_.push_back(position_);
        agent_.pause(1);
        const bool kept = calls_[position_].keep(
            op.handle, arguments, tensors,
            {planned.inputs.size(), planned.random || op.known.random || foreign, leaves});
        agent_.pause(0);
        if (!kept) {
            diverge(name);
            restoreForGood(name +
                           " works on tensors that are more than their memory (quantized, sparse)");
            return false;
        }
        unkept_ = !keepSources(tensors, leaves);
    }
    if (!unkept_ || isLastToMake(planned)) return true;
    unkept_ = false;
    diverge(name + ", which may not run twice");
    restoreForGood(name + " may not run twice, and a later op writes what it has made");
    return false;
}

/// Recordings see whether its bytes change by no op: where memory is not the framework's or was
/// there before the step, and where an op that only fills has made it.
bool Runtime::isRecorded(std::uint32_t storage, const c10::StorageImpl& impl) const {
    const auto& chain = program().storages[storage].chain;
    return isForeign(impl) || program().storages[storage].constant ||
           (!chain.empty() && program().ops[chain.front()].onlyFills);
}

/// Batch norm updates its running statistics in training, which its schema does not say and no
/// session has. From then on other ops that read them get copies. One that has read them before
/// in this step has none: the step leaves its plan. False: it has.
bool Runtime::noteStatistics(const profiler::native::Operator& known, const Tensors& tensors,
                             Values values) {
    if (!Guards::on(GuardKind::Exposures) || !updatesStatistics(*known.schema, values)) return true;
    bool read = false;
    for (const c10::TensorImpl* const statistics : statisticsOf(*known.schema, values)) {
        c10::StorageImpl* const impl = plainStorage(*statistics);
        if (exposures_.isStatistics(impl)) continue;
        exposures_.noteStatistics(impl);
        if (!planned()) continue;
        const Items<Input> inputs = program().ops[position_].inputs;
        for (std::size_t k = 0; k < tensors.size() && k < inputs.size(); ++k)
            read = read || (tensors[k] == statistics && wasRead(inputs[k].storage));
    }
    if (read)
        diverge(program().fullName(program().ops[position_]) +
                ", whose running statistics another op has read before");
    return !read;
}

/// By an op of the step so far.
bool Runtime::wasRead(std::uint32_t storage) const {
    for (std::size_t i = 0; i < position_; ++i) {
        const ProgramOp& op = program().ops[i];
        if (!op.onlyViews &&
            std::any_of(op.inputs.begin(), op.inputs.end(),
                        [&](const Input& input) { return input.storage == storage; }))
            return true;
    }
    return false;
}

/// Those that the op reads. `leaves`: it runs again without them. False: they lie where the host
/// cannot copy them, and the op does not run again.
bool Runtime::copyStatistics(const Tensors& tensors, bool leaves) {
    if (leaves) return true;
    const std::size_t inputs = program().ops[position_].inputs.size();
    for (std::size_t k = 0; k < tensors.size() && k < inputs; ++k) {
        const c10::StorageImpl& impl = *plainStorage(*tensors[k]);
        if (!exposures_.isStatistics(&impl)) continue;
        if (impl.device_type() != c10::DeviceType::CPU || bytesOf(impl) == nullptr) return false;
        Call::Source source = exposures_.sourceOf(*tensors[k], k);
        source.copy = Exposures::copyOf(impl, source);
        calls_[position_].sources().push_back(std::move(source));
    }
    return true;
}

/// Sources of the op whose bytes may change by no op. Where they are trusted they are read again
/// and stay; else the op gets copies of them, if that is worth while. False: it does not run again.
bool Runtime::keepSources(const Tensors& tensors, bool leaves) {
    if (!Guards::on(GuardKind::Exposures)) return true;
    if (!copyStatistics(tensors, leaves) || !keepChanging(tensors)) return false;
    const ProgramOp& planned = program().ops[position_];
    for (std::size_t k = 0; k < tensors.size() && k < planned.inputs.size(); ++k) {
        const std::uint32_t s = planned.inputs[k].storage;
        if (exposures_.isStatistics(plainStorage(*tensors[k])) ||
            !exposures_.isLookedAt(*tensors[k]) ||
            std::find(planned.writes.begin(), planned.writes.end(), s) != planned.writes.end())
            continue;
        if (exposures_.changed()) return false;
        calls_[position_].sources().push_back(exposures_.sourceOf(*tensors[k], k));
    }
    return true;
}

/// The same of those that the program changes, other than parameters.
bool Runtime::keepChanging(const Tensors& tensors) {
    if (exposures_.changeOnGpu(tensors)) return false;
    const ProgramOp& planned = program().ops[position_];
    Call& call = calls_[position_];
    std::int64_t made = 0, copied = 0;
    for (const Output& output : planned.outputs) made += output.makes ? output.bytes : 0;
    bool writes = false, trusted = true;
    for (std::size_t k = 0; k < tensors.size() && k < planned.inputs.size(); ++k) {
        const std::uint32_t s = planned.inputs[k].storage;
        c10::StorageImpl* const impl = plainStorage(*tensors[k]);
        Slot& slot = slots_[s];
        if (slot.born.taken() && slot.born.version == slot.written && bytesOf(*impl) != nullptr &&
            !verifier_.isSame(slot.born, bytesOf(*impl),
                              static_cast<std::int64_t>(impl->nbytes()))) {
            exposures_.expose(impl);
            expose(s);
        }
        if (!inExtension()) slot.born = Checksum();
        if (exposures_.isStatistics(impl) || !exposures_.mayChange(*tensors[k])) continue;
        Call::Source source = exposures_.sourceOf(*tensors[k], k);
        exposures_.read(impl, source);
        copied += source.bytes;
        call.sources().push_back(std::move(source));
        writes = writes ||
                 std::find(planned.writes.begin(), planned.writes.end(), s) != planned.writes.end();
        trusted = trusted && exposures_.trusted(isRecorded(s, *impl));
        if (!trusted) continue;
        slot.stays = true;
        slot.hold();
    }
    if (call.sources().empty() || (trusted && !writes && copied <= kMostRead * made)) return true;
    if (writes || (2 * copied > made && isLastToMake(planned))) {
        call.clear();
        return false;
    }
    for (Call::Source& source : call.sources()) {
        const auto k = static_cast<std::size_t>(source.input);
        source.copy = Exposures::copyOf(*plainStorage(*tensors[k]), source);
    }
    return true;
}

/// Nothing could make again what the op has made or written: it stays until the step ends.
void Runtime::keepResults() {
    const ProgramOp& op = program().ops[position_];
    const auto keep = [&](std::uint32_t storage) {
        Slot& slot = slots_[storage];
        if (slot.key() == nullptr) return;
        slot.hold();
        if (!std::exchange(slot.stays, true))
            figures_.pinnedBytes += program().storages[storage].bytes;
    };
    for (const Output& output : op.outputs)
        if (output.makes) keep(output.storage);
    for (const std::uint32_t storage : op.writes) keep(storage);
}

/// A tensor without plain memory (sparse, nested) may keep the storages of others, and looks at
/// them in a way of its own: they stay.
void Runtime::keepInputs() {
    for (const Input& input : program().ops[position_].inputs) {
        Slot& slot = slots_[input.storage];
        if (slot.key() != nullptr && !program().storages[input.storage].constant) slot.stays = true;
    }
}

/// What an op that only fills has made, other code often fills after it; and an extension, any.
void Runtime::noteBorn(const ProgramOp& op) {
    for (const Output& output : op.outputs) {
        if (!output.makes || !output.followed) continue;
        Slot& slot = slots_[output.storage];
        slot.unread = true;
        if (!Guards::on(GuardKind::Exposures)) continue;
        const StoragePointer impl = slot.lock();
        if (!impl || impl->device_type() != c10::DeviceType::CPU || bytesOf(*impl) == nullptr)
            continue;
        slot.born = verifier_.whole(bytesOf(*impl), static_cast<std::int64_t>(impl->nbytes()));
        slot.born.version = slot.written;
    }
}

/// Code that calls no op may write it from here on. What ops have read of it so far they get from
/// a copy when they run again.
void Runtime::expose(std::size_t storage) {
    if (!Guards::on(GuardKind::Exposures)) return;
    Slot& slot = slots_[storage];
    slot.stays = true;
    const StoragePointer impl = slot.lock();
    if (std::exchange(slot.exposed, true) || !impl || isForeign(*impl) ||
        impl->device_type() != c10::DeviceType::CPU ||
        exposures_.trusted(isRecorded(static_cast<std::uint32_t>(storage), *impl)))
        return;
    StoragePointer copy;
    for (const std::size_t op : kept_) {
        const auto& inputs = program().ops[op].inputs;
        for (std::size_t k = 0; k < inputs.size(); ++k) {
            if (inputs[k].storage != storage || inputs[k].version != slot.written ||
                calls_[op].owns(k))
                continue;
            const Call::Source all{
                static_cast<std::int64_t>(k), {}, 0, static_cast<std::int64_t>(impl->nbytes()), {}};
            if (!copy) copy = Exposures::copyOf(*impl, all);
            calls_[op].sources().push_back(all);
            calls_[op].sources().back().copy = copy;
        }
    }
}

/// In a step without a plan: whether such bytes change by no op. `values`: of an op that writes.
void Runtime::watchSources(const profiler::native::Operator& known, const Tensors& tensors,
                           Values values) {
    for (std::size_t k = 0; known.writes.empty() && k < tensors.size(); ++k)
        if (exposures_.mayChange(*tensors[k]))
            exposures_.read(plainStorage(*tensors[k]), exposures_.sourceOf(*tensors[k], k));
    if (!exposures_.anyRead()) return;
    for (const std::size_t index : known.writes)
        for (const c10::TensorImpl* const tensor : plainTensors(values.slice(index, 1)))
            exposures_.forgetReads(plainStorage(*tensor));
}

/// An op is about to run again: what it reads is what it was; else the program ends.
void Runtime::verifySources(std::uint32_t op) {
    const ProgramOp& planned = program().ops[op];
    if (planned.varies.on(program().onGpu ? c10::DeviceType::CUDA : c10::DeviceType::CPU))
        noteVarying(program().names[planned.name].name, program().onGpu);
    const auto find = [&](const Input& input) {
        const Slot& slot = slots_[input.storage];
        return slot.version == input.version ? slot.lock() : StoragePointer();
    };
    if (!calls_[op].changedSource(verifier_, planned.inputs, find)) return;
    Mismatch mismatch;
    mismatch.op = op;
    mismatch.program = current_;
    mismatch.name = program().fullName(planned);
    for (const Output& output : planned.outputs)
        if (output.makes) mismatch.bytes += output.bytes;
    mismatch.kind = MismatchKind::UnseenWriter;
    condemn(std::move(mismatch));
}

/// What the op has just recomputed is what was dropped; else the program ends.
void Runtime::verifyRecomputed(std::uint32_t op) {
    const auto wrong = slots_.takeMismatch();
    if (!wrong && !verifier_.unattributed()) return;
    const ProgramOp& planned = program().ops[op];
    const Call& call = calls_[op];
    Mismatch mismatch;
    mismatch.op = op;
    mismatch.program = current_;
    mismatch.name = program().fullName(planned);
    if (!wrong) {
        mismatch.kind = slots_.likelyKind(call, planned.inputs);
        return verifier_.attribute(mismatch);
    }
    mismatch.bytes = program().storages[*wrong].bytes;
    const auto find = [&](const Input& input) { return slots_[input.storage].lock(); };
    const bool there =
        call.kept() &&
        std::all_of(planned.inputs.begin(), planned.inputs.end(), [&](const Input& i) {
            return slots_[i.storage].present() && slots_[i.storage].version == i.version;
        });
    if (there && call.changedSource(verifier_, planned.inputs, find))
        mismatch.kind = MismatchKind::UnseenWriter;
    else if (call.kept() && call.foreign())
        mismatch.kind = MismatchKind::HiddenState;
    else if (there && planned.writes.empty() && !call.repeats(agent_, planned.inputs, find))
        mismatch.kind = MismatchKind::NotDeterministic;
    condemn(std::move(mismatch));
}

}  // namespace hw::live::runtime

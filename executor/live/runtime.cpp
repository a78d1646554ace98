// SPDX-License-Identifier: MIT
#include "runtime.h"

#include <algorithm>

namespace hw::executor::live {
namespace {

/// The tensors with plain memory, in the order in which a recording notes them.
std::vector<at::Tensor> plainTensors(Values values) {
    std::vector<at::Tensor> tensors;
    eachTensor(values, [&](const at::Tensor& tensor) {
        if (plainStorage(tensor) != nullptr) tensors.push_back(tensor);
    });
    return tensors;
}

std::string describe(const c10::FunctionSchema& schema, const std::vector<at::Tensor>& tensors) {
    std::string text = schema.name();
    if (!schema.overload_name().empty()) text += "." + schema.overload_name();
    text += "(";
    for (std::size_t i = 0; i < tensors.size() && i < 4; ++i) {
        text += i == 0 ? "[" : ", [";
        for (std::int64_t d = 0; d < tensors[i].dim(); ++d)
            text += (d == 0 ? "" : ", ") + std::to_string(tensors[i].size(d));
        text += "]";
    }
    return text + ")";
}

/// Looks at no bytes: makes views only.
bool onlyViews(const ProgramOp& op) {
    return op.writes.empty() && !op.outputs.empty() &&
           std::none_of(op.outputs.begin(), op.outputs.end(),
                        [](const Output& output) { return output.makes; });
}

}  // namespace

void Runtime::forgetPrograms() {
    const std::lock_guard<std::recursive_mutex> guard(lock_);
    programs_.clear();
    fault_.clear();
}

bool Runtime::add(const std::string& bytes, std::string& why) {
    auto program = readProgram(bytes, why);
    if (!program) return false;
    for (const ProgramOp& op : program->ops)
        if (op.schema == nullptr) {
            why = "this framework has no op " + op.fullName();
            return false;
        }
    for (Program& other : programs_) {
        const std::size_t common = shared(other, *program).ops;
        for (std::size_t i = 0; i < common; ++i)
            other.ops[i].keep = program->ops[i].keep = other.ops[i].keep || program->ops[i].keep;
    }
    programs_.push_back(std::move(*program));
    return true;
}

/// How far two programs are the same, but for the numbers of their storages.
Runtime::Shared Runtime::shared(const Program& one, const Program& other) const {
    Shared result;
    result.storages.assign(one.storages.size(), -1);
    std::vector<bool> taken(other.storages.size(), false);
    const auto same = [&](std::uint32_t a, std::uint32_t b) {
        if (result.storages[a] < 0 && !taken[b]) {
            if (one.storages[a].bytes != other.storages[b].bytes ||
                one.storages[a].constant != other.storages[b].constant)
                return false;
            result.storages[a] = b;
            taken[b] = true;
        }
        return result.storages[a] == static_cast<std::int64_t>(b);
    };
    for (; result.ops < std::min(one.ops.size(), other.ops.size()); ++result.ops) {
        const ProgramOp &a = one.ops[result.ops], &b = other.ops[result.ops];
        bool equal = a.schema == b.schema && a.inputs.size() == b.inputs.size() &&
                     a.outputs.size() == b.outputs.size() && a.writes.size() == b.writes.size();
        for (std::size_t k = 0; equal && k < a.inputs.size(); ++k)
            equal = a.inputs[k].form == b.inputs[k].form &&
                    same(a.inputs[k].storage, b.inputs[k].storage);
        for (std::size_t k = 0; equal && k < a.outputs.size(); ++k)
            equal = a.outputs[k].form == b.outputs[k].form &&
                    a.outputs[k].makes == b.outputs[k].makes &&
                    same(a.outputs[k].storage, b.outputs[k].storage);
        for (std::size_t k = 0; equal && k < a.writes.size(); ++k)
            equal = same(a.writes[k], b.writes[k]);
        if (!equal) break;
    }
    return result;
}

void Runtime::enter(std::int64_t program) {
    current_ = program;
    position_ = 0;
    figures_ = {};
    divergence_.reset();
    if (!planned()) return;
    slots_.reset(this->program().storages.size());
    calls_.clear();
    calls_.resize(this->program().ops.size());
    for (const ProgramStorage& storage : this->program().storages)
        if (storage.pinned) figures_.pinnedBytes += storage.bytes;
}

void Runtime::begin() {
    const std::lock_guard<std::recursive_mutex> guard(lock_);
    enter(programs_.empty() || !fault_.empty() ? -1 : 0);
}

Runtime::Boundary Runtime::boundary() {
    const std::lock_guard<std::recursive_mutex> guard(lock_);
    Boundary result = Boundary::Unplanned;
    if (planned()) {
        if (position_ < program().ops.size()) return Boundary::Middle;
        figures_.uncountedBytes = uncountedBytes();
        restoreAll();  // what a plan has left out by mistake, or nothing
        result = Boundary::Planned;
    }
    slots_.reset(0);
    calls_.clear();
    current_ = -1;
    return result;
}

/// Why the op is not the planned one; empty: it is.
std::string Runtime::mismatch(const ProgramOp& op, const c10::FunctionSchema& schema,
                              const std::vector<at::Tensor>& tensors) {
    if (op.schema != &schema) return "another op";
    if (tensors.size() != op.inputs.size())
        return std::to_string(tensors.size()) + " tensors, planned were " +
               std::to_string(op.inputs.size());
    for (std::size_t k = 0; k < tensors.size(); ++k) {
        const Input& input = op.inputs[k];
        const Slot& slot = slots_[input.storage];
        const c10::StorageImpl* const impl = plainStorage(tensors[k]);
        const ProgramStorage& storage = program().storages[input.storage];
        const std::string which = "tensor " + std::to_string(k);
        if (formOf(tensors[k]) != input.form) return which + " of another form";
        if (slot.key() == impl) continue;
        if (slot.key() != nullptr || !storage.constant) return which + " on another storage";
        if (storage.bytes != static_cast<std::int64_t>(impl->nbytes()))
            return which + " on a storage of " + std::to_string(impl->nbytes()) +
                   " bytes, planned " + std::to_string(storage.bytes);
    }
    return {};
}

void Runtime::bindInputs(const ProgramOp& op, const std::vector<at::Tensor>& tensors) {
    for (std::size_t k = 0; k < tensors.size(); ++k) {
        const std::size_t storage = op.inputs[k].storage;
        if (slots_[storage].key() != nullptr) continue;
        slots_.bind(storage, plainStorage(tensors[k]));
    }
}

/// Of the program's constants, those that are there now. What lasts and no op has read is taken to
/// be older than the counting.
std::int64_t Runtime::uncountedBytes() {
    std::int64_t bytes = 0;
    for (std::size_t s = 0; s < slots_.size(); ++s) {
        if (!program().storages[s].constant) continue;
        const StoragePointer storage = slots_[s].lock();
        const bool unread = slots_[s].key() == nullptr && program().storages[s].lasting;
        if (unread || (storage && counted_(reinterpret_cast<std::uint64_t>(storage->data())) < 0))
            bytes += program().storages[s].bytes;
    }
    return bytes;
}

bool Runtime::bindOutputs(const ProgramOp& op, Values results) {
    const std::vector<at::Tensor> tensors = plainTensors(results);
    if (tensors.size() != op.outputs.size()) return false;
    for (std::size_t j = 0; j < tensors.size(); ++j) {
        const Output& output = op.outputs[j];
        c10::StorageImpl* const impl = plainStorage(tensors[j]);
        Slot& slot = slots_[output.storage];
        if (output.makes) {
            if (static_cast<std::int64_t>(impl->nbytes()) !=
                program().storages[output.storage].bytes)
                return false;
            slot = Slot();
            slots_.bind(output.storage, impl);
        } else if (slot.key() != impl) {
            return false;
        }
    }
    return true;
}

void Runtime::perform(const std::vector<Action>& actions) {
    for (const Action& action : actions) perform(action);
}

void Runtime::perform(const Action& action) {
    switch (action.kind) {
        case wire::LiveAction::Recompute:
            return recompute(action);
        case wire::LiveAction::Drop: {
            ProgramStorage& storage = program().storages[action.target];
            if (storage.pinned || storage.constant) return;
            if (!slots_.drop(action.target)) storage.pinned = true;
            return;
        }
        case wire::LiveAction::Hold:
            slots_[action.target].held = slots_[action.target].weak.lock();
            return;
        case wire::LiveAction::Release:
            slots_[action.target].held.reset();
            return;
    }
}

/// Runs an op again as the plan says. What is there already stays as it is.
void Runtime::recompute(const Action& action) {
    const ProgramOp& op = program().ops[action.target];
    const auto position = [&](std::uint32_t storage) {
        const auto& chain = program().storages[storage].chain;
        const auto at = std::find(chain.begin(), chain.end(), action.target) - chain.begin();
        return static_cast<std::int32_t>(at + (program().storages[storage].constant ? 1 : 0));
    };
    bool needed = false;
    for (const std::uint32_t output : action.outputs)
        if (output < op.outputs.size() && op.outputs[output].makes)
            needed = needed || !slots_[op.outputs[output].storage].present();
    for (const std::uint32_t storage : op.writes)
        needed = needed || slots_[storage].version < position(storage);
    if (!needed) return;
    Rebuild rebuild(program(), calls_, slots_);
    std::vector<StoragePointer> inputs;
    for (const Input& input : op.inputs) inputs.push_back(rebuild.at(input.storage, input.version));
    const std::vector<at::Tensor> results = calls_[action.target].run(op, [&](const Input& input) {
        return inputs[static_cast<std::size_t>(&input - op.inputs.data())];
    });
    ++figures_.recomputedOps;
    for (const std::uint32_t output : action.outputs) {
        if (output >= op.outputs.size() || !op.outputs[output].makes || output >= results.size())
            continue;
        if (slots_[op.outputs[output].storage].present()) continue;
        slots_.fill(op.outputs[output].storage,
                    StoragePointer::reclaim_copy(plainStorage(results[output])), 0);
    }
    for (const std::uint32_t storage : op.writes) ++slots_[storage].version;
}

void Runtime::restore(std::size_t storage) {
    Rebuild rebuild(program(), calls_, slots_);
    rebuild.restore(storage);
    figures_.restoredBytes += program().storages[storage].bytes;
}

void Runtime::restoreAll() {
    const std::vector<std::size_t> gone = slots_.dropped();
    if (gone.empty()) return;
    Rebuild rebuild(program(), calls_, slots_);
    for (const std::size_t storage : gone) {
        if (!slots_[storage].dropped) continue;
        rebuild.restore(storage);
        figures_.restoredBytes += program().storages[storage].bytes;
    }
}

/// What the op reads is there, at the version that the program left.
void Runtime::ensureInputs(const ProgramOp& op) {
    if (onlyViews(op)) return;
    for (const Input& input : op.inputs)
        if (slots_[input.storage].dropped) restore(input.storage);
}

/// Another plan goes on where this one does not: the step so far is the same in both.
bool Runtime::switchTo(const c10::FunctionSchema& schema, const std::vector<at::Tensor>& tensors) {
    for (std::size_t q = 0; q < programs_.size(); ++q) {
        if (static_cast<std::int64_t>(q) == current_ || programs_[q].ops.size() <= position_)
            continue;
        const Shared common = shared(program(), programs_[q]);
        if (common.ops < position_ || programs_[q].ops[position_].schema != &schema) continue;
        restoreAll();
        const std::int64_t before = std::exchange(current_, static_cast<std::int64_t>(q));
        slots_.rename(common.storages, program().storages.size());
        if (!mismatch(program().ops[position_], schema, tensors).empty()) {
            std::vector<std::int64_t> back(program().storages.size(), -1);
            for (std::size_t s = 0; s < common.storages.size(); ++s)
                if (common.storages[s] >= 0)
                    back[static_cast<std::size_t>(common.storages[s])] =
                        static_cast<std::int64_t>(s);
            current_ = before;
            slots_.rename(back, program().storages.size());
            continue;
        }
        calls_.resize(program().ops.size());
        return true;
    }
    return false;
}

void Runtime::diverge(const std::string& found) {
    const std::string expected =
        position_ < program().ops.size() ? program().ops[position_].fullName() : "the step's end";
    restoreAll();
    divergence_ = Divergence{static_cast<std::int64_t>(position_), expected, found};
    slots_.reset(0);
    calls_.clear();
    current_ = -1;
}

void Runtime::restoreForGood(const std::string& why) {
    if (fault_.empty()) fault_ = why;
    programs_.clear();
}

void Runtime::release() {
    const std::lock_guard<std::recursive_mutex> guard(lock_);
    if (planned()) {
        restoreAll();
        slots_.reset(0);
        calls_.clear();
        current_ = -1;
    }
    restoreForGood("released");
}

void Runtime::touch(const at::Tensor& tensor) {
    const std::lock_guard<std::recursive_mutex> guard(lock_);
    if (!planned() || plainStorage(tensor) == nullptr) return;
    const std::int64_t storage = slots_.droppedAt(plainStorage(tensor));
    if (storage < 0) return;
    restore(static_cast<std::size_t>(storage));
    program().storages[static_cast<std::size_t>(storage)].pinned = true;
}

void Runtime::op(const c10::OperatorHandle& handle, c10::DispatchKeySet below,
                 torch::jit::Stack* stack) {
    std::unique_lock<std::recursive_mutex> guard(lock_);
    ++figures_.ops;
    if (!planned()) {
        guard.unlock();
        handle.redispatchBoxed(below, stack);
        return;
    }
    const c10::FunctionSchema& schema = handle.schema();
    const Values values = torch::jit::last(*stack, schema.arguments().size());
    const std::vector<at::Tensor> tensors = plainTensors(values);
    const std::string why = position_ == program().ops.size()
                                ? "the step has no more ops"
                                : mismatch(program().ops[position_], schema, tensors);
    if (!why.empty() && !switchTo(schema, tensors)) {
        diverge(describe(schema, tensors) + ": " + why);
        guard.unlock();
        handle.redispatchBoxed(below, stack);
        return;
    }
    const ProgramOp& planned = program().ops[position_];
    bindInputs(planned, tensors);
    perform(planned.before);
    ensureInputs(planned);
    if (planned.keep) {
        pauseCounting_(1);
        const bool kept = calls_[position_].keep(handle, values, planned);
        pauseCounting_(0);
        if (!kept) {
            diverge(describe(schema, tensors));
            restoreForGood(planned.fullName() + " works on tensors without memory of their own");
            guard.unlock();
            handle.redispatchBoxed(below, stack);
            return;
        }
    }
    guard.unlock();
    try {
        handle.redispatchBoxed(below, stack);
    } catch (...) {
        guard.lock();
        if (this->planned()) diverge("an exception in " + planned.fullName());
        throw;
    }
    guard.lock();
    if (!this->planned()) return;
    const Values results = torch::jit::last(*stack, schema.returns().size());
    if (!bindOutputs(planned, results)) return diverge("other results of " + planned.fullName());
    for (const std::uint32_t storage : planned.writes) {
        ++slots_[storage].written;
        slots_[storage].version = slots_[storage].written;
    }
    ++position_;
    perform(planned.after);
}

}  // namespace hw::executor::live

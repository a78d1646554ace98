// SPDX-License-Identifier: MIT
// Whether what the program does is what the plan has next.
#include "runtime.h"

namespace hw::live::runtime {

/// Of a storage that is not followed it is known that it is none of those that are.
bool Runtime::isStorage(std::uint32_t storage, bool followed, c10::StorageImpl* impl) {
    return followed || !lean_ ? slots_[storage].key() == impl : slots_.find(impl) < 0;
}

/// Whether the op is the planned one, on storages that are known.
bool Runtime::matches(const c10::FunctionSchema& schema, const Tensors& tensors) {
    const Program& program = this->program();
    if (position_ == program.ops.size() || (early_ && position_ >= program.forwardAt)) return false;
    const ProgramOp& op = program.ops[position_];
    if (op.schema != &schema || tensors.size() != op.given()) return false;
    for (std::size_t k = 0; k < tensors.size(); ++k)
        if (!isStorage(op.inputs[k].storage, op.inputs[k].followed, plainStorage(*tensors[k])) ||
            formOf(*tensors[k]) != op.inputs[k].form)
            return false;
    return true;
}

/// Why the op is not the planned one; empty: it is, and the constants that it is the first to read
/// are known from now on.
std::string Runtime::mismatch(const c10::FunctionSchema& schema, const Tensors& tensors) {
    if (matches(schema, tensors)) return {};
    if (position_ == program().ops.size()) return "the step has no more ops";
    if (early_ && position_ >= program().forwardAt) return "the forward pass has not begun";
    const ProgramOp& op = program().ops[position_];
    if (op.schema != &schema) return "another op";
    if (tensors.size() != op.given())
        return std::to_string(tensors.size()) + " tensors, planned were " +
               std::to_string(op.given());
    std::vector<std::size_t> bound;
    for (std::size_t k = 0; k < tensors.size(); ++k) {
        std::string why = mismatch(op.inputs[k], *tensors[k], bound);
        if (why.empty()) continue;
        for (const std::size_t storage : bound) slots_.unbind(storage);
        return "tensor " + std::to_string(k) + why;
    }
    return {};
}

std::string Runtime::mismatch(const Input& input, const c10::TensorImpl& tensor,
                              std::vector<std::size_t>& bound) {
    c10::StorageImpl* const impl = plainStorage(tensor);
    const ProgramStorage& storage = program().storages[input.storage];
    if (formOf(tensor) != input.form) return " of another form";
    if (isStorage(input.storage, input.followed, impl)) return {};
    if (lean_ && !input.followed) return " on another storage";
    if (slots_[input.storage].key() != nullptr || !storage.constant) return " on another storage";
    if (storage.bytes != static_cast<std::int64_t>(impl->nbytes()))
        return " on a storage of " + std::to_string(impl->nbytes()) + " bytes, planned " +
               std::to_string(storage.bytes);
    if (!slots_.bindNew(input.storage, impl)) return " on another storage";
    bound.push_back(input.storage);
    return {};
}

/// A recording has a storage as large as the program makes it later on (resize_()).
bool Runtime::isPlanned(const Output& output, const c10::TensorImpl& result) {
    return static_cast<std::int64_t>(plainStorage(result)->nbytes()) == output.bytes ||
           (!program().storages[output.storage].moved && formOf(result) == output.form);
}

bool Runtime::bindOutputs(const ProgramOp& op, const Tensors& tensors) {
    if (tensors.size() != op.outputs.size()) return false;
    if (op.given() < op.inputs.size() && !tensors.empty()) {
        std::vector<std::size_t> bound;
        if (!mismatch(op.inputs.back(), *tensors.front(), bound).empty()) return false;
    }
    for (std::size_t j = 0; j < tensors.size(); ++j) {
        const Output& output = op.outputs[j];
        c10::StorageImpl* const impl = plainStorage(*tensors[j]);
        if (!output.makes || (lean_ && !output.followed)) {
            if (!isStorage(output.storage, output.followed, impl)) return false;
            if (output.makes && !isPlanned(output, *tensors[j])) return false;
            if (op.writesWhole && output.followed && coversStorage(*tensors[j]))
                slots_[output.storage].uncompared = false;
        } else if (!isPlanned(output, *tensors[j]) || !slots_.bindNew(output.storage, impl)) {
            return false;
        }
        if (output.makes && output.followed)
            slots_[output.storage].uncompared =
                op.undefined || !coversStorage(*tensors[j]) || op.varies.on(impl->device_type());
        if (listsIntegers(*tensors[j])) {
            program().storages[output.storage].pinned = true;
            if (slots_[output.storage].away()) restore(output.storage);
        }
    }
    return true;
}

/// By what it is and how its tensors look alone.
bool Runtime::isNext(const c10::FunctionSchema& schema, const Tensors& tensors) const {
    if (position_ == program().ops.size()) return false;
    const ProgramOp& op = program().ops[position_];
    if (op.schema != &schema || tensors.size() != op.given()) return false;
    for (std::size_t k = 0; k < tensors.size(); ++k)
        if (formOf(*tensors[k]) != op.inputs[k].form) return false;
    return true;
}

/// Counts the op where it is the planned one and nothing of it is followed.
bool Runtime::passAside(const c10::FunctionSchema& schema, const Tensors& tensors,
                        c10::Device told) {
    if (!lean_ || begins_ || passed_ || !told.is_cpu() || !isNext(schema, tensors)) return false;
    const ProgramOp& op = program().ops[position_];
    if (op.followed) return false;
    for (const c10::TensorImpl* const tensor : tensors)
        if (!tensor->is_cpu() || slots_.find(plainStorage(*tensor)) >= 0) return false;
    for (std::size_t k = 0; k < op.followedGone; ++k) slots_.forgetDead(op.gone[k]);
    ++position_;
    if (position_ >= program().settledAt) settle();
    fetchAhead(op);
    stopClock();
    return true;
}

/// Counts the op where it is the planned one, or that of another plan that the step goes on with.
bool Runtime::passSettled(const c10::FunctionSchema& schema, const Tensors& tensors) {
    if (!isNext(schema, tensors) && !switchSettled(schema, tensors)) return false;
    fetchAhead(program().ops[position_++]);
    stopClock();
    return true;
}

}  // namespace hw::live::runtime

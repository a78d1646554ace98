// SPDX-License-Identifier: MIT
// Whether what the program does is what the plan has next.
#include "op_matcher.h"
#include "runtime.h"

namespace hw::live::runtime {

/// The plan's storages as the slots have them. Of one that is not followed in this step it is only
/// known that it is none of those that are.
struct Runtime::KnownStorages {
    Slots& slots;
    bool lean;

    bool follows(bool followed) const { return followed || !lean; }
    bool is(std::uint32_t planned, bool followed, c10::StorageImpl* storage) {
        return follows(followed) ? slots[planned].key() == storage : slots.find(storage) < 0;
    }
    bool isOpen(std::uint32_t planned) const { return slots[planned].key() == nullptr; }
    bool bind(std::uint32_t planned, c10::StorageImpl* storage) {
        return slots.bindNew(planned, storage);
    }
    void unbind(std::uint32_t planned) { slots.unbind(planned); }
};

Difference Runtime::compare(const c10::FunctionSchema& schema, const Tensors& tensors) {
    KnownStorages known{slots_, lean_};
    return OpMatcher(program(), known)
        .compare(program().ops[position_], schema, PlainTensors{tensors});
}

/// Why the op is not the planned one; empty: it is.
std::string Runtime::mismatch(const c10::FunctionSchema& schema, const Tensors& tensors) {
    if (position_ == program().ops.size()) return "the step has no more ops";
    if (early_ && position_ >= program().forwardAt) return "the forward pass has not begun";
    return compare(schema, tensors).text();
}

bool Runtime::bindOutputs(const ProgramOp& op, const Tensors& tensors) {
    KnownStorages known{slots_, lean_};
    if (!OpMatcher(program(), known).bindResults(op, PlainTensors{tensors})) return false;
    for (std::size_t j = 0; j < tensors.size(); ++j) {
        const Output& output = op.outputs[j];
        if (output.followed && output.makes)
            slots_[output.storage].uncompared =
                op.undefined || !coversStorage(*tensors[j]) ||
                op.varies.on(plainStorage(*tensors[j])->device_type());
        else if (output.followed && op.writesWhole && coversStorage(*tensors[j]))
            slots_[output.storage].uncompared = false;
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
    return looksLike(program().ops[position_], schema, PlainTensors{tensors});
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

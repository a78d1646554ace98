// SPDX-License-Identifier: MIT
// Whether an op of the program is the one that a plan has next, and its results the planned ones:
// by what it is, by the forms of its tensors and by the storages in which they lie. Both runtimes
// ask here; each knows storages in its own way, which it hands in:
//
//   Tensors, of an op that comes by: size(), storage(k), bytes(k) of its storage, form(k), and
//   isNew(k), false where
//     a result is known to lie in a storage that was there before.
//   Known, the plan's storages as far as they have come by:
//     bool follows(followed)                 it knows those that the plan moves (`followed`), or
//     all bool is(planned, followed, storage)    it is that one of the plan's; one of those that it
//     does not know bool isOpen(planned)                   none has come by for that one of the
//     plan's bool bind(planned, storage)            it is that one from now on; false: it is
//     another one already void unbind(planned)
#pragma once

#include "call.h"

namespace hw::live::runtime {

/// In what an op differs from the planned one.
struct Difference {
    enum class In { Nothing, Op, Count, Form, Storage, Bytes };
    In in = In::Nothing;
    std::size_t tensor = 0;               // in which tensor
    std::int64_t found = 0, planned = 0;  // tensors, or bytes

    explicit operator bool() const { return in != In::Nothing; }
    std::string text() const;
};

/// Tensors with plain memory, by address.
struct PlainTensors {
    const Tensors& tensors;

    std::size_t size() const { return tensors.size(); }
    c10::StorageImpl* storage(std::size_t k) const { return plainStorage(*tensors[k]); }
    std::int64_t bytes(std::size_t k) const {
        return static_cast<std::int64_t>(storage(k)->nbytes());
    }
    std::uint64_t form(std::size_t k) const { return formOf(*tensors[k]); }
    bool isNew(std::size_t) const { return true; }  // Known::bind() finds out
};

/// As far as it shows without a look at storages.
template <typename Tensors>
bool looksLike(const ProgramOp& op, const c10::FunctionSchema& schema, const Tensors& tensors) {
    if (op.schema != &schema || tensors.size() != op.given()) return false;
    for (std::size_t k = 0; k < tensors.size(); ++k)
        if (tensors.form(k) != op.inputs[k].form) return false;
    return true;
}

/// The op's tensors beside the planned ones. Where nothing differs, the constants that the op is
/// the first to read are known from now on.
template <typename Known>
class OpMatcher {
public:
    OpMatcher(const Program& program, Known& known) : program_(program), known_(known) {}

    template <typename Tensors>
    Difference compare(const ProgramOp& op, const c10::FunctionSchema& schema,
                       const Tensors& tensors) {
        using In = Difference::In;
        if (op.schema != &schema) return {In::Op};
        if (tensors.size() != op.given())
            return {In::Count, 0, static_cast<std::int64_t>(tensors.size()),
                    static_cast<std::int64_t>(op.given())};
        for (std::size_t k = 0; k < tensors.size(); ++k)
            if (Difference difference = compare(op.inputs[k], tensors, k)) {
                for (const std::uint32_t planned : bound_) known_.unbind(planned);
                return difference;
            }
        return {};
    }

    /// Of an op that looked like the planned one: whether it has made what was planned.
    template <typename Tensors>
    bool bindResults(const ProgramOp& op, const Tensors& results) {
        if (results.size() != op.outputs.size()) return false;
        if (op.adopts && results.size() > 0 && compare(op.inputs.back(), results, 0)) return false;
        for (std::size_t j = 0; j < results.size(); ++j) {
            const Output& output = op.outputs[j];
            if (output.makes && !(results.isNew(j) && isPlanned(output, results, j))) return false;
            const bool binds = output.makes && known_.follows(output.followed);
            if (binds ? !known_.bind(output.storage, results.storage(j))
                      : !known_.is(output.storage, output.followed, results.storage(j)))
                return false;
        }
        return true;
    }

private:
    template <typename Tensors>
    Difference compare(const Input& input, const Tensors& tensors, std::size_t k) {
        using In = Difference::In;
        const ProgramStorage& planned = program_.storages[input.storage];
        if (tensors.form(k) != input.form) return {In::Form, k};
        if (known_.is(input.storage, input.followed, tensors.storage(k))) return {};
        if (!known_.follows(input.followed) || !planned.constant || !known_.isOpen(input.storage))
            return {In::Storage, k};
        if (planned.bytes != tensors.bytes(k))
            return {In::Bytes, k, tensors.bytes(k), planned.bytes};
        if (!known_.bind(input.storage, tensors.storage(k))) return {In::Storage, k};
        bound_.push_back(input.storage);
        return {};
    }

    /// A recording has a storage as large as the program makes it later on (resize_()).
    template <typename Tensors>
    bool isPlanned(const Output& output, const Tensors& results, std::size_t j) const {
        return results.bytes(j) == output.bytes ||
               (!program_.storages[output.storage].moved && results.form(j) == output.form);
    }

    const Program& program_;
    Known& known_;
    c10::SmallVector<std::uint32_t, 4> bound_;  // by this op
};

}  // namespace hw::live::runtime

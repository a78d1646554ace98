// SPDX-License-Identifier: MIT
// The arguments of an op, kept so that it can be run again: tensors as where they look, never as
// references, which would keep memory alive and change what autograd decides by counting them.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <functional>
#include <optional>
#include <vector>

#include "agent_api.h"
#include "program.h"
#include "registry.h"
#include "values.h"

namespace hw::executor::live {

using StoragePointer = c10::intrusive_ptr<c10::StorageImpl>;
using profiler::native::eachTensor;
using profiler::native::formOf;
using profiler::native::Tensors;
using profiler::native::Values;
/// The storage that holds that version of a storage of the plan.
using FindStorage = std::function<StoragePointer(const Input&)>;

/// Null for what has no plain memory of its own (sparse, nested, a wrapper of Python's), and for a
/// number of the program's that became a tensor on its way to the op: recordings have it as one.
[[gnu::hot]] c10::StorageImpl* plainStorage(const c10::TensorImpl& tensor);
inline c10::StorageImpl* plainStorage(const at::Tensor& tensor) {
    return plainStorage(*tensor.unsafeGetTensorImpl());
}

/// A list of integers in the CPU's memory: of lengths, batch sizes, places to split at. Ops that
/// are made of others read such arguments themselves, above the dispatch key that we are at (packed
/// sequences, CTC's loss, tensor_split), so its bytes have to stay.
bool listsIntegers(const c10::TensorImpl& tensor);

/// Those with plain memory, in the order in which a recording notes them.
[[gnu::hot]] Tensors plainTensors(Values values);
[[gnu::hot]] Tensors plainTensors(const Tensors& tensors);

/// The device that an op works on: a GPU if a tensor is there, else the one that it is told.
[[gnu::hot]] at::Device deviceOf(const Tensors& tensors, at::Device told);
bool anyOnCuda(const Tensors& tensors);
/// The device that is among the arguments of an op, or the CPU.
at::Device toldDevice(Values arguments);

/// The op has running statistics.
bool hasStatistics(const c10::FunctionSchema& schema);
/// Whether it updates them now; it leaves them alone when it runs again.
bool updatesStatistics(const c10::FunctionSchema& schema, Values arguments);

class Call {
public:
    /// What its caller knows of the op.
    struct Facts {
        std::size_t inputs;  // as many tensors are among the arguments, at most
        bool random;
        bool updates;  // see updatesStatistics()
    };
    /// False: an argument has no plain memory, so the op cannot be run again.
    bool keep(const c10::OperatorHandle& op, Values arguments, const Tensors& tensors,
              const Facts& facts);
    /// Runs the op again, below autograd and unseen; its results as tensors, in order. Generators
    /// are left as they were, and copies of their states are not counted; running statistics are
    /// not updated twice.
    std::vector<at::Tensor> run(const profiler::native::AgentApi& agent, Items<Input> inputs,
                                const FindStorage& find) const;
    /// No tensor is held any more; the room for the arguments stays, and what they were.
    void clear();
    bool kept() const { return op_.has_value(); }

private:
    struct View {
        std::int64_t input = -1;  // which one of the op; -1: an undefined tensor
        std::int64_t offset = 0;
        caffe2::TypeMeta type;
        c10::DispatchKeySet keys;
        c10::SmallVector<std::int64_t, 6> sizesAndStrides;
    };
    struct Argument {
        enum class Kind { Value, Tensor, List, OptionalList } kind = Kind::Value;
        c10::IValue value;
        c10::SmallVector<View, 1> views;
    };

    bool add(Argument& argument, const at::Tensor& tensor, std::size_t most);
    at::Tensor look(const View& view, Items<Input> inputs, const FindStorage& find) const;
    torch::jit::Stack stack(Items<Input> inputs, const FindStorage& find) const;

    std::optional<c10::OperatorHandle> op_;
    std::vector<Argument> arguments_;
    std::int64_t inputs_ = 0;
    bool holdsTensors_ = false;  // among the values
    at::Generator generator_;
    at::Tensor generatorState_;
};

}  // namespace hw::executor::live

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
#include "operators.h"
#include "program.h"
#include "registry.h"
#include "settings.h"
#include "values.h"
#include "verifier.h"

namespace hw::live::runtime {

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
/// sequences, CTC's loss, tensor_split), so its bytes have to stay. So have those of a generator's
/// state, which set_state() reads: bytes of any shape.
bool listsIntegers(const c10::TensorImpl& tensor);

using StorageList = c10::SmallVector<c10::StorageImpl*, 4>;
/// Adds all memory that a tensor looks at: of a subclass that Python dispatches, which may be a
/// view of a plain tensor, of a nested one, of a sparse one's indices and values.
void addStorages(const c10::TensorImpl& tensor, StorageList& storages);

/// Those with plain memory, in the order in which a recording notes them; `hidden`: the memory of
/// the others.
[[gnu::hot]] Tensors plainTensors(Values values, StorageList* hidden = nullptr);
[[gnu::hot]] Tensors plainTensors(const Tensors& tensors, StorageList* hidden = nullptr);

/// The tensor is its plain memory, and nothing else; the quantizer of one that is quantized holds
/// others.
inline bool isPlain(const c10::TensorImpl& tensor) {
    return plainStorage(tensor) != nullptr && !tensor.is_quantized();
}
/// All that are defined are plain, and none is an object, which may hold tensors.
bool allPlain(Values values);

/// The device that an op works on: a GPU if a tensor is there, else the one that it is told.
[[gnu::hot]] at::Device deviceOf(const Tensors& tensors, at::Device told);
bool anyOnCuda(const Tensors& tensors);
/// The device that is among the arguments of an op, or the CPU.
at::Device toldDevice(Values arguments);

/// The op has running statistics that it may update, or is the gradient of such an op.
bool hasStatistics(const std::string& op);
/// Whether it updates them now; it leaves them alone when it runs again.
bool updatesStatistics(const c10::FunctionSchema& schema, Values arguments);
/// In training, such an op needs no running statistics to run again.
bool leavesStatistics(const c10::FunctionSchema& schema, Values arguments);
/// Its running statistics.
Tensors statisticsOf(const c10::FunctionSchema& schema, Values arguments);

class Call {
public:
    /// What its caller knows of the op.
    struct Facts {
        std::size_t inputs;  // as many tensors are among the arguments, at most
        bool random;
        bool leaves;  // see leavesStatistics()
    };
    /// False: an argument has no plain memory, so the op cannot be run again.
    bool keep(const c10::OperatorHandle& op, Values arguments, const Tensors& tensors,
              const Facts& facts);
    /// What the op has read of a storage whose bytes may change unseen: a copy of our own, or what
    /// they looked like.
    struct Source {
        std::int64_t input = 0;  // which one of the op
        StoragePointer copy;     // null: the storage itself is read again
        std::int64_t from = 0;   // the first byte of the storage that is copied or summed
        std::int64_t bytes = 0;
        Checksum sum;  // a sample
    };
    std::vector<Source>& sources() { return sources_; }
    /// Of input k, it reads a copy of its own: the storage need not be there.
    bool owns(std::size_t k) const;
    /// A source whose bytes are not what they were, none: all are.
    std::optional<std::size_t> changedSource(const Verifier& verifier, Items<Input> inputs,
                                             const FindStorage& find) const;
    /// What its op is called; it is kept.
    const std::string& name() const { return op_->schema().name(); }
    /// The op is not the framework's own.
    bool foreign() const { return profiler::native::operatorOf(*op_).foreign(); }
    /// Whether two runs make the same bytes.
    bool repeats(const profiler::native::AgentApi& agent, Items<Input> inputs,
                 const FindStorage& find) const;

    /// Runs the op again, below autograd and unseen, under the settings of its first run; its
    /// results as tensors, in order. Generators and settings are left as they were, and copies of
    /// generators' states are not counted; running statistics are not updated twice.
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

    const Source* ownOf(std::int64_t input) const;
    bool add(Argument& argument, const at::Tensor& tensor, std::size_t most);
    at::Tensor look(const View& view, Items<Input> inputs, const FindStorage& find) const;
    torch::jit::Stack stack(Items<Input> inputs, const FindStorage& find) const;

    std::optional<c10::OperatorHandle> op_;
    std::vector<Argument> arguments_;
    std::int64_t inputs_ = 0;
    bool holdsTensors_ = false;  // among the values
    at::Generator generator_;
    at::Tensor generatorState_;
    const Settings* settings_ = nullptr;
    std::vector<Source> sources_;  // of few ops
};

}  // namespace hw::live::runtime

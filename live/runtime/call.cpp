// SPDX-License-Identifier: MIT
#include "call.h"

#include <ATen/Context.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/record_function.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/version.h>

#include <ATen/SparseCsrTensorImpl.h>
#include <ATen/SparseTensorImpl.h>

#include <algorithm>
#include <mutex>
#include <unordered_set>
#include <utility>

#include "guards.h"

namespace hw::live::runtime {
namespace {

#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4)
using OptionalTensor = std::optional<at::Tensor>;
#else
using OptionalTensor = c10::optional<at::Tensor>;
#endif

/// Update their running statistics in training, without saying so in their schema.
const std::unordered_set<std::string> kUpdating{
    "aten::native_batch_norm",       "aten::cudnn_batch_norm",
    "aten::miopen_batch_norm",       "aten::batch_norm_update_stats",
    "aten::batch_norm_gather_stats", "aten::batch_norm_gather_stats_with_counts"};
const std::unordered_set<std::string> kUpdatingBackward{"aten::native_batch_norm_backward",
                                                        "aten::cudnn_batch_norm_backward",
                                                        "aten::miopen_batch_norm_backward"};

/// Dispatch keys that torch.func puts before the ops of a function. An op that runs again is not
/// part of that function.
constexpr c10::DispatchKeySet kTransforms(
    {c10::DispatchKey::FuncTorchDynamicLayerFrontMode,
     c10::DispatchKey::FuncTorchDynamicLayerBackMode, c10::DispatchKey::FuncTorchGradWrapper,
     c10::DispatchKey::FuncTorchBatched, c10::DispatchKey::FuncTorchVmapMode,
     c10::DispatchKey::Batched, c10::DispatchKey::VmapMode, c10::DispatchKey::Functionalize});

bool isStatistics(const c10::Argument& argument) {
    return argument.name() == "running_mean" || argument.name() == "running_var";
}

bool hasTensors(const c10::IValue& value) {
    bool any = false;
    eachTensor(value, [&](const at::Tensor&) { any = true; });
    return any;
}

/// What a kernel is found by, without what has happened already when the op came by.
c10::DispatchKeySet keysOf(const c10::TensorImpl& tensor) {
    return tensor.key_set() - c10::autograd_dispatch_keyset_with_ADInplaceOrView -
           c10::DispatchKeySet({c10::DispatchKey::Python, c10::DispatchKey::PythonTLSSnapshot});
}

/// Has warned the program when it ran first. TORCH_WARN came with another handler after 1.13.
#ifdef _TORCH_WARN_WITH
namespace warnings = c10::WarningUtils;
struct Silent final : c10::WarningHandler {
    void process(const c10::Warning&) override {}
};
#else
namespace warnings = c10::Warning;
struct Silent final : c10::WarningHandler {
    void process(const c10::SourceLocation&, const std::string&, bool) override {}
};
#endif

/// The generator is in the given state while this exists.
class Replay {
public:
    Replay(const profiler::native::AgentApi& agent, const at::Generator& generator,
           const at::Tensor& state)
        : generator_(generator) {
        if (!generator_.defined()) return;
        const profiler::native::Pause pause(agent);
        const std::lock_guard<std::mutex> guard(generator_.mutex());
        before_ = generator_.get_state();
        generator_.set_state(state);
    }
    ~Replay() {
        if (!generator_.defined()) return;
        const std::lock_guard<std::mutex> guard(generator_.mutex());
        generator_.set_state(before_);
    }
    Replay(const Replay&) = delete;
    Replay& operator=(const Replay&) = delete;

private:
    at::Generator generator_;
    at::Tensor before_;
};

}  // namespace

bool hasStatistics(const std::string& op) {
    return kUpdating.count(op) != 0 || kUpdatingBackward.count(op) != 0;
}

/// In evaluation they read them.
bool leavesStatistics(const c10::FunctionSchema& schema, Values arguments) {
    if (!hasStatistics(schema.name())) return false;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const std::string& name = schema.arguments()[i].name();
        if ((name == "training" || name == "train") && arguments[i].isBool())
            return arguments[i].toBool();
    }
    return true;
}

bool updatesStatistics(const c10::FunctionSchema& schema, Values arguments) {
    return kUpdating.count(schema.name()) != 0 && leavesStatistics(schema, arguments);
}

Tensors statisticsOf(const c10::FunctionSchema& schema, Values arguments) {
    Tensors statistics;
    for (std::size_t i = 0; i < arguments.size(); ++i)
        if (isStatistics(schema.arguments()[i]))
            for (const c10::TensorImpl* const tensor : plainTensors(arguments.slice(i, 1)))
                statistics.push_back(tensor);
    return statistics;
}

at::Device deviceOf(const Tensors& tensors, at::Device told) {
    if (!told.is_cpu()) return told;
    for (const c10::TensorImpl* const tensor : tensors)
        if (!tensor->device().is_cpu()) return tensor->device();
    return told;
}

bool anyOnCuda(const Tensors& tensors) {
    return std::any_of(tensors.begin(), tensors.end(),
                       [](const c10::TensorImpl* tensor) { return tensor->is_cuda(); });
}

at::Device toldDevice(Values arguments) {
    for (const c10::IValue& value : arguments)
        if (value.isDevice()) return value.toDevice();
    return at::kCPU;
}

c10::StorageImpl* plainStorage(const c10::TensorImpl& tensor) {
    if (tensor.is_wrapped_number()) return nullptr;
    c10::StorageImpl* const storage = tensor.unsafe_storage().unsafeGetStorageImpl();
    if (storage == nullptr || tensor.is_nested()) return nullptr;
    if (tensor.key_set().has(c10::DispatchKey::Python)) return nullptr;
    // A meta tensor has no bytes, and how many it would have may be a symbol.
    if (storage->device_type() == c10::DeviceType::Meta) return nullptr;
    return tensor.layout() == at::kStrided ? storage : nullptr;
}

bool listsIntegers(const c10::TensorImpl& tensor) {
    constexpr std::int64_t kMostState = 1 << 13;  // bytes of a generator's state: 5,056 on the CPU
    if (!tensor.is_cpu()) return false;
    const c10::ScalarType type = c10::typeMetaToScalarType(tensor.dtype());
    return (tensor.dim() == 1 && c10::isIntegralType(type, false)) ||
           (type == c10::ScalarType::Byte && tensor.numel() <= kMostState);
}

void addStorages(const c10::TensorImpl& tensor, StorageList& storages) {
    if (tensor.is_wrapped_number()) return;
    const auto add = [&](const at::Tensor& part) {
        if (part.defined()) addStorages(*part.unsafeGetTensorImpl(), storages);
    };
    if (const auto* const sparse = dynamic_cast<const at::SparseTensorImpl*>(&tensor)) {
        add(sparse->indices());
        add(sparse->values());
    } else if (const auto* const rows = dynamic_cast<const at::SparseCsrTensorImpl*>(&tensor)) {
        add(rows->compressed_indices());
        add(rows->plain_indices());
        add(rows->values());
    } else if (auto* const storage = tensor.unsafe_storage().unsafeGetStorageImpl();
               storage != nullptr && storage->device_type() != c10::DeviceType::Meta) {
        storages.push_back(storage);
    }
}

Tensors plainTensors(Values values, StorageList* hidden) {
    Tensors tensors;
    eachTensor(values, [&](const at::Tensor& tensor) {
        const c10::TensorImpl* const impl = tensor.unsafeGetTensorImpl();
        if (plainStorage(*impl) != nullptr)
            tensors.push_back(impl);
        else if (hidden != nullptr)
            addStorages(*impl, *hidden);
    });
    return tensors;
}

Tensors plainTensors(const Tensors& tensors, StorageList* hidden) {
    Tensors plain;
    for (const c10::TensorImpl* const tensor : tensors) {
        if (plainStorage(*tensor) != nullptr)
            plain.push_back(tensor);
        else if (hidden != nullptr)
            addStorages(*tensor, *hidden);
    }
    return plain;
}

bool allPlain(Values values) {
    bool all = std::none_of(values.begin(), values.end(), [](const c10::IValue& value) {
        return value.isObject() || value.isCapsule();
    });
    eachTensor(values, [&](const at::Tensor& tensor) {
        const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
        all = all && (isPlain(impl) || impl.is_wrapped_number());
    });
    return all;
}

void Call::clear() {
    op_.reset();
    if (std::exchange(holdsTensors_, false))
        for (Argument& argument : arguments_) argument.value = {};
    generator_ = at::Generator();
    generatorState_.reset();
    settings_ = nullptr;
    sources_.clear();
    inputs_ = 0;
}

bool Call::add(Argument& argument, const at::Tensor& tensor, std::size_t most) {
    View& view = argument.views.emplace_back();
    if (!tensor.defined()) return true;
    const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
    if (plainStorage(impl) == nullptr || tensor.is_quantized() ||  // its scale is not in its bytes
        inputs_ == static_cast<std::int64_t>(most))
        return false;
    view.input = inputs_++;
    const auto sizes = tensor.sizes(), strides = tensor.strides();
    view.sizesAndStrides.assign(sizes.begin(), sizes.end());
    view.sizesAndStrides.append(strides.begin(), strides.end());
    view.offset = tensor.storage_offset();
    view.type = tensor.dtype();
    view.keys = keysOf(impl);
    return true;
}

bool Call::keep(const c10::OperatorHandle& op, Values arguments, const Tensors& tensors,
                const Facts& facts) {
    clear();
    op_ = op;
    bool plain = true;
    arguments_.resize(arguments.size());
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const c10::IValue& value = arguments[i];
        Argument& argument = arguments_[i];
        argument.kind = Argument::Kind::Value;
        argument.views.clear();
        if (value.isTensor() && value.toTensor().defined() &&
            value.toTensor().unsafeGetTensorImpl()->is_wrapped_number()) {
            argument.value = value;
            holdsTensors_ = true;
        } else if (value.isTensor()) {
            argument.kind = Argument::Kind::Tensor;
            plain = plain && add(argument, value.toTensor(), facts.inputs);
        } else if (value.isTensorList()) {
            argument.kind = Argument::Kind::List;
            for (const c10::IValue& item : value.toListRef())
                plain = plain && add(argument, item.toTensor(), facts.inputs);
        } else if (value.isList() && hasTensors(value)) {
            argument.kind = Argument::Kind::OptionalList;
            for (const c10::IValue& item : value.toListRef())
                plain = plain && add(argument, item.isTensor() ? item.toTensor() : at::Tensor(),
                                     facts.inputs);
        } else {
            const bool unplain = hasTensors(value);
            holdsTensors_ = holdsTensors_ || unplain;
            plain = plain && !unplain;
            argument.value = value;
        }
        if (value.isGenerator()) generator_ = value.toGenerator();
    }
    if (!facts.random) generator_ = at::Generator();
    if (facts.random && !generator_.defined())
        generator_ = at::globalContext().defaultGenerator(deviceOf(tensors, toldDevice(arguments)));
    if (generator_.defined()) {
        const std::lock_guard<std::mutex> guard(generator_.mutex());
        generatorState_ = generator_.get_state();
    }
    if (Guards::on(GuardKind::Settings)) settings_ = Settings::now();
    if (!facts.leaves) return plain;
    const auto& names = op.schema().arguments();
    for (std::size_t i = 0; i < arguments_.size(); ++i)
        if (isStatistics(names[i]))
            for (View& view : arguments_[i].views) view.input = -1;
    return plain;
}

const Call::Source* Call::ownOf(std::int64_t input) const {
    for (const Source& source : sources_)
        if (source.input == input && source.copy) return &source;
    return nullptr;
}

bool Call::owns(std::size_t k) const {
    return ownOf(static_cast<std::int64_t>(k)) != nullptr;
}

std::optional<std::size_t> Call::changedSource(const Verifier& verifier, Items<Input> inputs,
                                               const FindStorage& find) const {
    for (const Source& source : sources_) {
        if (source.copy || !source.sum.taken()) continue;
        const auto k = static_cast<std::size_t>(source.input);
        const StoragePointer storage = find(inputs[k]);
        const auto* const bytes =
            storage ? static_cast<const char*>(
                          static_cast<const c10::StorageImpl&>(*storage).data_ptr().get())
                    : nullptr;
        if (bytes != nullptr && !verifier.isSame(source.sum, bytes + source.from, source.bytes))
            return k;
    }
    return std::nullopt;
}

at::Tensor Call::look(const View& view, Items<Input> inputs, const FindStorage& find) const {
    if (view.input < 0) return {};
    const Source* const own = sources_.empty() ? nullptr : ownOf(view.input);
    at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
        c10::Storage(own != nullptr ? own->copy
                                    : find(inputs[static_cast<std::size_t>(view.input)])),
        view.keys, view.type);
    c10::TensorImpl* const impl = tensor.unsafeGetTensorImpl();
    const auto width = static_cast<std::int64_t>(view.type.itemsize());
    impl->set_storage_offset(view.offset - (own != nullptr ? own->from / width : 0));
    const Items<std::int64_t> both = view.sizesAndStrides;
    const std::size_t dimensions = both.size() / 2;
    impl->set_sizes_and_strides(both.slice(0, dimensions), both.slice(dimensions));
    return tensor;
}

torch::jit::Stack Call::stack(Items<Input> inputs, const FindStorage& find) const {
    torch::jit::Stack stack;
    stack.reserve(arguments_.size());
    for (const Argument& argument : arguments_) {
        if (argument.kind == Argument::Kind::Value) {
            stack.push_back(argument.value);
        } else if (argument.kind == Argument::Kind::Tensor) {
            at::Tensor tensor = look(argument.views[0], inputs, find);
            if (tensor.defined())
                stack.emplace_back(std::move(tensor));
            else
                stack.emplace_back();
        } else if (argument.kind == Argument::Kind::List) {
            c10::List<at::Tensor> list;
            for (const View& view : argument.views) list.push_back(look(view, inputs, find));
            stack.emplace_back(std::move(list));
        } else {
            c10::List<OptionalTensor> list;
            for (const View& view : argument.views)
                list.push_back(view.input < 0 ? OptionalTensor()
                                              : OptionalTensor(look(view, inputs, find)));
            stack.emplace_back(std::move(list));
        }
    }
    return stack;
}

bool Call::repeats(const profiler::native::AgentApi& agent, Items<Input> inputs,
                   const FindStorage& find) const {
    const auto sums = [&] {
        std::vector<std::uint64_t> all;
        for (const at::Tensor& tensor : run(agent, inputs, find)) {
            const c10::StorageImpl& made = *plainStorage(tensor);
            if (made.device_type() == c10::DeviceType::CPU && made.data_ptr().get() != nullptr)
                all.push_back(agent.checksum(made.data_ptr().get(),
                                             static_cast<std::int64_t>(made.nbytes()), 1, 0));
        }
        return all;
    };
    return sums() == sums();
}

std::vector<at::Tensor> Call::run(const profiler::native::AgentApi& agent, Items<Input> inputs,
                                  const FindStorage& find) const {
    torch::jit::Stack values = stack(inputs, find);
    {
        const Replay replay(agent, generator_, generatorState_);
        const UnderSettings settings(settings_);
        Silent silent;
        const warnings::WarningHandlerGuard quiet(&silent);
        const at::AutoDispatchBelowADInplaceOrView belowAutograd;
        const c10::impl::ExcludeDispatchKeyGuard unseen(
            c10::DispatchKeySet({c10::DispatchKey::Fake, c10::DispatchKey::Python,
                                 c10::DispatchKey::PythonTLSSnapshot}) |
            c10::autocast_dispatch_keyset | kTransforms);
        const at::DisableRecordFunctionGuard unprofiled;
        op_->callBoxed(&values);
    }
    std::vector<at::Tensor> results;
    eachTensor(Values(values.data(), values.size()), [&](const at::Tensor& tensor) {
        if (plainStorage(tensor) != nullptr) results.push_back(tensor);
    });
    return results;
}

}  // namespace hw::live::runtime

// SPDX-License-Identifier: MIT
#include "typed_ops.h"

#include <ATen/core/IListRef.h>
#include <ATen/core/op_registration/infer_schema.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/version.h>

#include <array>
#include <mutex>
#include <set>
#include <tuple>

#include "observer.h"

namespace hw::profiler::native {
namespace {

#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4)
template <class Value>
using Optional = std::optional<Value>;
#else
template <class Value>
using Optional = c10::optional<Value>;
#endif

void note(Arguments& arguments, const at::Tensor& tensor) {
    if (tensor.defined()) arguments.tensors.push_back(tensor.unsafeGetTensorImpl());
}
void note(Arguments& arguments, const Optional<at::Tensor>& tensor) {
    if (tensor.has_value()) note(arguments, *tensor);
}
void note(Arguments& arguments, const at::ITensorListRef& tensors) {
    for (const at::Tensor& tensor : tensors) note(arguments, tensor);
}
void note(Arguments& arguments, at::TensorList tensors) {
    for (const at::Tensor& tensor : tensors) note(arguments, tensor);
}
void note(Arguments& arguments, const std::vector<at::Tensor>& tensors) {
    note(arguments, at::TensorList(tensors));
}
void note(Arguments& arguments, const Optional<at::Device>& device) {
    if (device.has_value()) arguments.device = *device;
}
template <class Plain>
void note(Arguments&, const Plain&) {}
template <class... Results>
void note(Arguments& arguments, const std::tuple<Results...>& results) {
    std::apply([&](const auto&... each) { (note(arguments, each), ...); }, results);
}

template <class Signature>
class TypedKernel;

template <class Result, class... Args>
class TypedKernel<Result(Args...)> final : public c10::OperatorKernel {
public:
    explicit TypedKernel(const c10::OperatorHandle& op)
        : op_(op.typed<Result(Args...)>()),
          known_(operatorOf(op)),
          onCpu_(known_.worksOn(false)),
          onCuda_(known_.worksOn(true)) {}

    [[gnu::hot]] Result operator()(c10::DispatchKeySet keys, Args... args) {
        const bool works = keys.has(c10::DispatchKey::CUDA) ? onCuda_ : onCpu_;
        const TypedHook* const hook = works ? typedHook(keys) : nullptr;
        if (hook == nullptr) return boxed(keys, std::forward<Args>(args)...);
        const c10::impl::ExcludeDispatchKeyGuard inside(kKey);
        const auto below = keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, kKey);
        Arguments arguments;
        (note(arguments, args), ...);
        const auto box = [&] { return c10::impl::boxArgs<Args...>(args...); };
        const Turn turn = hook->begin({op_, known_, below}, arguments, box);
        if (turn != Turn::Seen) return other(turn, keys, std::forward<Args>(args)...);
        Result result = [&]() -> Result {
            try {
                return op_.redispatch(below, std::forward<Args>(args)...);
            } catch (...) {
                hook->failed();
                throw;
            }
        }();
        Arguments results;
        note(results, result);
        hook->end(results.tensors);
        return result;
    }

private:
    // Apart from what almost every op does: that is to stay in the processor's caches.
    [[gnu::noinline]] Result boxed(c10::DispatchKeySet keys, Args... args) {
        return c10::impl::BoxedKernelWrapper<Result(Args...)>::call(
            c10::BoxedKernel::makeFromFunction<&onOp>(), op_, keys, std::forward<Args>(args)...);
    }
    [[gnu::noinline]] Result other(Turn turn, c10::DispatchKeySet keys, Args... args) {
        if (turn == Turn::Boxed) return boxed(keys, std::forward<Args>(args)...);
        const auto below = keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, kKey);
        return op_.redispatch(below, std::forward<Args>(args)...);
    }

    c10::TypedOperatorHandle<Result(Args...)> op_;
    const Operator& known_;
    const bool onCpu_, onCuda_;  // where it does the work itself
};

template <class... Each>
struct Signatures {};

namespace usual {

using Tensor = at::Tensor;
using T = const at::Tensor&;
using MaybeT = const Optional<at::Tensor>&;
using Scalar = const at::Scalar&;
using Int = std::int64_t;
using Ints = at::IntArrayRef;
using Sym = c10::SymInt;
using Syms = c10::SymIntArrayRef;
using Type = Optional<at::ScalarType>;
using Form = Optional<at::MemoryFormat>;
using OnDevice = Optional<at::Device>;
using LaidOut = Optional<at::Layout>;
using Pinned = Optional<bool>;
using Generator = Optional<at::Generator>;
using Word = c10::string_view;
using Several = std::vector<at::Tensor>;
template <std::size_t kBits>
using Which = std::array<bool, kBits>;
using Two = std::tuple<at::Tensor, at::Tensor>;
using Three = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

using Ops = Signatures<
    // elementwise, products, their backward
    Tensor(T), Tensor(T, T), Tensor(T, T, T), Tensor(T, Scalar), Tensor(T, Scalar, Scalar),
    Tensor(T, T, Scalar), Tensor(T, T, T, Scalar), Tensor(T, T, T, Scalar, Scalar),
    // in place
    Tensor&(Tensor&), Tensor&(Tensor&, T), Tensor&(Tensor&, Scalar), Tensor&(Tensor&, T, Scalar),
    Tensor&(Tensor&, T, T, Scalar), Tensor&(Tensor&, T, bool),
    // views, copies, new tensors
    Tensor(T, Syms), Tensor(T, Syms, bool), Tensor(T, Ints), Tensor(T, Int), Tensor(T, Int, Int),
    Tensor(T, Int, Sym), Tensor(T, Int, Optional<Sym>, Optional<Sym>, Sym), Tensor(T, Form),
    Tensor(Syms, Type, LaidOut, OnDevice, Pinned, Form),
    Tensor(T, Type, LaidOut, OnDevice, Pinned, Form), Tensor(const at::ITensorListRef&, Int),
    Tensor(at::TensorList, Int), Tensor(T, Syms, Syms), Several(T, Sym, Int), Several(T, Int),
    // activations, random numbers
    Tensor(T, Word), Tensor(T, T, Word), Tensor&(Tensor&, double, Generator),
    // reductions, softmax
    at::Scalar(T), Tensor(T, Type), Tensor(T, at::OptionalIntArrayRef, bool, Type),
    Tensor(T, Int, bool), Tensor(T, T, Int, at::ScalarType), Tensor(T, Int, Type),
    // layers
    Tensor(T, T, Sym, bool, bool), Tensor(T, T, MaybeT, Syms, Syms, Syms, bool, Syms, Sym),
    Three(T, T, T, at::OptionalSymIntArrayRef, Syms, Syms, Syms, bool, Syms, Sym, Which<3>),
    Three(T, MaybeT, MaybeT, MaybeT, MaybeT, bool, double, double),
    Three(T, T, MaybeT, MaybeT, MaybeT, MaybeT, MaybeT, bool, double, Which<3>),
    Three(T, Syms, MaybeT, MaybeT, double), Three(T, T, Syms, T, T, MaybeT, MaybeT, Which<3>),
    Two(T, double, Pinned)>;

}  // namespace usual

struct Candidate {
    c10::FunctionSchema schema;
    bool inPlace;
    c10::KernelFunction (*kernel)(const c10::OperatorHandle& op);
};

template <class Signature>
struct InPlace;
template <class Result, class... Args>
struct InPlace<Result(Args...)> : std::is_reference<Result> {};

/// Throws where the op is called with other types.
template <class Signature>
c10::KernelFunction kernelFor(const c10::OperatorHandle& op) {
    return c10::KernelFunction::makeFromUnboxedFunctor<false, TypedKernel<Signature>>(
        std::make_unique<TypedKernel<Signature>>(op));
}

template <class... Each>
std::vector<Candidate> candidates(Signatures<Each...>) {
    return {Candidate{c10::inferFunctionSchemaFlattenedReturns<Each>(), InPlace<Each>::value,
                      &kernelFor<Each>}...};
}

}  // namespace

void takeTyped(const c10::OperatorHandle& op) {
    static std::mutex lock;
    static std::set<c10::OperatorName, bool (*)(const c10::OperatorName&, const c10::OperatorName&)>
        taken([](const c10::OperatorName& one, const c10::OperatorName& other) {
            return std::tie(one.name, one.overload_name) <
                   std::tie(other.name, other.overload_name);
        });
    const std::lock_guard<std::mutex> guard(lock);
    if (!taken.insert(op.operator_name()).second || takesDimensionNames(op.operator_name())) return;
    static const std::vector<Candidate> known = candidates(usual::Ops());
    for (const Candidate& candidate : known) {
        if (candidate.inPlace != op.schema().is_mutable() ||
            c10::findSchemaDifferences(candidate.schema, op.schema()))
            continue;
        try {
            static_cast<void>(
                new c10::RegistrationHandleRAII(c10::Dispatcher::singleton().registerImpl(
                    op.operator_name(), kKey, candidate.kernel(op), {}, nullptr, "highwater")));
            return;
        } catch (const c10::Error&) {
        }  // the schema leaves open which types it is called with
    }
}

}  // namespace hw::profiler::native

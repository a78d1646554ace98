// SPDX-License-Identifier: MIT
#include "executor/replay/kernels.h"

#include <ATen/Context.h>
#include <ATen/ops/empty_strided.h>

#include <algorithm>

#include "executor/replay/implementations.h"
#include "executor/replay/relu_mask.h"

namespace hw::executor {
namespace {

using c10::IValue;
using c10::Stack;
using core::Implementation;
using core::kNone;
using core::OpIndex;
using core::Status;
using core::TensorIndex;
using Handle = c10::OperatorHandle;
using Kernel = std::function<void(Stack&)>;

constexpr std::size_t kInputMask = 10;  // of convolution_backward: which gradients it makes

struct Shape {
    std::vector<std::int64_t> sizes, strides;
};

// Arguments of a convolution, or of the gradient of one.
struct ConvolutionPlaces {
    bool gradient = false;
    std::size_t images() const { return gradient ? 1 : 0; }
    std::size_t strides() const { return gradient ? 4 : 3; }
};

Stack called(const Handle& op, Stack stack) {
    op.callBoxed(stack);
    return stack;
}

IValue oneImage(const IValue& batch, std::int64_t n) {
    return batch.toTensor().narrow(0, n, 1);
}

// The result image by image, in a batch of the captured strides.
at::Tensor imageByImage(const Handle& op, const Stack& arguments, const ConvolutionPlaces& places,
                        const Shape& shape) {
    const at::Tensor& like = arguments[places.images()].toTensor();
    at::Tensor result = at::empty_strided(shape.sizes, shape.strides, like.options());
    for (std::int64_t n = 0; n < shape.sizes[0]; ++n) {
        Stack one = arguments;
        one[places.images()] = oneImage(arguments[places.images()], n);
        if (places.gradient) one[0] = oneImage(arguments[0], n);
        result.narrow(0, n, 1).copy_(called(op, std::move(one))[0].toTensor());
    }
    return result;
}

Kernel perSample(const Handle& op, const ConvolutionPlaces& places, const Shape& shape) {
    if (!places.gradient)
        return [=](Stack& stack) { stack = {imageByImage(op, stack, places, shape)}; };
    // Sums over the batch, so those of weights and bias, stay as they are.
    return [=](Stack& stack) {
        const c10::List<bool> wanted = stack[kInputMask].toBoolList();
        Stack images = stack;
        images[kInputMask] = c10::List<bool>({true, false, false});
        const at::Tensor input = imageByImage(op, images, places, shape);
        images.clear();
        if (!wanted.get(1) && !wanted.get(2)) {
            stack = {input, at::Tensor(), at::Tensor()};
            return;
        }
        stack[kInputMask] = c10::List<bool>({false, wanted.get(1), wanted.get(2)});
        op.callBoxed(stack);
        stack[0] = input;
    };
}

// All pixels become one column. A stride across its width of 1 changes nothing, but makes libtorch
// choose oneDNN.
Kernel pointwise(const Handle& op, const ConvolutionPlaces& places, const Shape& shape) {
    return [=](Stack& stack) {
        const auto column = [](const IValue& value) {
            const at::Tensor& batch = value.toTensor();
            return batch.view({batch.size(0), batch.size(1), batch.size(2) * batch.size(3), 1});
        };
        stack[places.images()] = column(stack[places.images()]);
        if (places.gradient) stack[0] = column(stack[0]);
        stack[places.strides()] = c10::List<std::int64_t>({1, 2});
        op.callBoxed(stack);
        if (stack[0].toTensor().defined()) stack[0] = stack[0].toTensor().view(shape.sizes);
    };
}

Kernel byColumns(const Handle& op) {
    return [op](Stack& stack) {
        struct WithoutOneDnn {
            bool before = at::globalContext().userEnabledMkldnn();
            WithoutOneDnn() { at::globalContext().setUserEnabledMkldnn(false); }
            ~WithoutOneDnn() { at::globalContext().setUserEnabledMkldnn(before); }
        } const without;
        op.callBoxed(stack);
    };
}

Span<const float> numbersOf(const at::Tensor& tensor) {
    return {static_cast<const float*>(tensor.data_ptr()), static_cast<std::size_t>(tensor.numel())};
}

Span<std::byte> bytesOf(const at::Tensor& tensor) {
    return {static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes()};
}

Kernel withMask(const Handle& op, std::int64_t bytes) {
    return [=](Stack& stack) {
        op.callBoxed(stack);
        const at::Tensor& result = stack[0].toTensor();
        const at::Tensor mask = at::empty_strided({bytes}, {1}, result.options().dtype(at::kByte));
        packPositive(numbersOf(result), bytesOf(mask));
        stack.emplace_back(mask);
    };
}

// The mask lies behind the arguments of the gradient op.
Kernel throughMask(const Shape& shape) {
    return [=](Stack& stack) {
        const at::Tensor gradient = stack[0].toTensor(), mask = stack.back().toTensor();
        const at::Tensor result = at::empty_strided(shape.sizes, shape.strides, gradient.options());
        maskGradient(bytesOf(mask), numbersOf(gradient),
                     {static_cast<float*>(result.data_ptr()), numbersOf(result).size()});
        stack = {result};
    };
}

core::Result<Kernel> overFirst(const std::string& name, const std::string& overload) {
    // Gradients have a form that takes the place of their result.
    const bool gradient = name.ends_with("_backward");
    const auto op =
        gradient ? torch::findOp(name, "grad_input") : torch::findOp(name + "_", overload);
    if (!op) return op.error();
    const Handle handle = *op;
    return Kernel([=](Stack& stack) {
        const at::Tensor into = torch::alias(stack[0].toTensor());
        if (gradient)
            stack.emplace_back(into);
        else
            stack[0] = into;
        handle.callBoxed(stack);
    });
}

Shape shapeOf(const Step& step, TensorIndex tensor) {
    return {step.shapes[tensor].sizes, step.shapes[tensor].strides};
}

core::Result<Kernel> kernelOf(const Step& step, const Implementation& one, const CallableOp& op) {
    const core::OpRow& row = step.ops[one.op];
    const ConvolutionPlaces places{row.name == "aten::convolution_backward"};
    const Shape shape = shapeOf(step, step.graph.ops[one.op].outputs[0].tensor);
    if (one.name == kPerSample) return perSample(op.handle, places, shape);
    if (one.name == kOneDnn) return pointwise(op.handle, places, shape);
    if (one.name == kColumns) return byColumns(op.handle);
    if (one.name == kMask) return withMask(op.handle, one.bytes.count());
    if (one.name == kInPlace) return overFirst(row.name, row.overload);
    return Kernel();
}

// Arguments that are not read become tensors of the same shape without memory.
Status takeShapeOnly(const Step& step, OpIndex index, CallableOp& op) {
    static const c10::Storage nothing = torch::makeStorage(0);
    for (OpArgument& argument : op.arguments) {
        if (argument.kind != OpArgument::Kind::Tensor ||
            !step.unread.at(index).contains(argument.tensors[0]))
            continue;
        const TensorShape& shape = step.shapes[argument.tensors[0]];
        const auto dtype = torch::dtypeFromName(shape.dtype);
        if (!dtype) return core::badInput("a tensor has the unknown type '" + shape.dtype + "'");
        argument.kind = OpArgument::Kind::Value;
        argument.value = torch::makeView(nothing, *dtype, shape.sizes, shape.strides, 0);
        argument.tensors.clear();
    }
    return {};
}

Status changeGradient(const Step& step, const Implementation& one, CallableOp& op) {
    if (Status ok = takeShapeOnly(step, one.backward, op); !ok || one.name != kMask) return ok;
    OpArgument mask;
    mask.kind = OpArgument::Kind::Tensor;
    mask.tensors.push_back(step.graph.ops[one.op].outputs.back().tensor);
    op.arguments.push_back(std::move(mask));
    op.kernel = throughMask(shapeOf(step, step.graph.ops[one.backward].outputs[0].tensor));
    return {};
}

}  // namespace

Status applyChosen(const Step& step, OpIndex index, CallableOp& op) {
    for (const Implementation& one : step.chosen) {
        if (one.op != index && one.backward != index) continue;
        if (torch::device().is_cuda())
            return core::badInput("implementations of ops can be chosen on the CPU only",
                                  "plan with --use none to run on a GPU");
        if (one.op == index) {
            auto kernel = kernelOf(step, one, op);
            if (!kernel) return kernel.error();
            if (*kernel) op.kernel = std::move(*kernel);
        } else if (Status ok = changeGradient(step, one, op); !ok) {
            return ok;
        }
    }
    return {};
}

}  // namespace hw::executor

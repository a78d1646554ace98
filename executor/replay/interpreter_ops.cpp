// SPDX-License-Identifier: MIT
#include <algorithm>

#include "executor/replay/interpreter_state.h"

namespace hw::executor {
namespace {

void collectTensors(const c10::IValue& value, std::vector<at::Tensor>& into) {
    if (value.isTensor()) {
        if (value.toTensor().defined()) into.push_back(value.toTensor());
    } else if (value.isTensorList()) {
        for (const at::Tensor& tensor : value.toTensorVector())
            if (tensor.defined()) into.push_back(tensor);
    } else if (value.isList()) {
        for (const c10::IValue& item : value.toListRef()) collectTensors(item, into);
    } else if (value.isTuple()) {
        for (const c10::IValue& item : value.toTupleRef().elements()) collectTensors(item, into);
    }
}

}  // namespace

Status Interpreter::State::callKernel(OpIndex index, bool again) {
    const CallableOp& op = ops[index];
    stack.clear();
    for (const OpArgument& argument : op.arguments) {
        for (const TensorIndex t : argument.tensors)
            if (t != kNone && !tensors[t].defined())
                return disagreement(index, "misses tensor " + std::to_string(t));
        const auto tensor = [&](TensorIndex t) { return t == kNone ? at::Tensor() : tensors[t]; };
        switch (argument.kind) {
            case OpArgument::Kind::Value:
                stack.emplace_back(argument.value);
                break;
            case OpArgument::Kind::Tensor:
                // In-place ops may change sizes and strides: of a tensor of their own, so that
                // others that share the recorded one keep theirs.
                stack.emplace_back(argument.written ? torch::alias(tensors[argument.tensors[0]])
                                                    : tensors[argument.tensors[0]]);
                break;
            case OpArgument::Kind::TensorList: {
                c10::List<at::Tensor> list;
                for (const TensorIndex t : argument.tensors) list.push_back(tensor(t));
                stack.emplace_back(std::move(list));
                break;
            }
            case OpArgument::Kind::OptionalTensorList: {
                c10::List<c10::optional<at::Tensor>> list;
                for (const TensorIndex t : argument.tensors)
                    list.push_back(t == kNone ? c10::optional<at::Tensor>()
                                              : c10::optional<at::Tensor>(tensors[t]));
                stack.emplace_back(std::move(list));
                break;
            }
        }
    }
    if (again)
        for (const std::size_t position : op.leftOutOnRecompute) stack[position] = c10::IValue();
    const auto begin = Clock::now();
    const Status ok = op.kernel ? torch::call(op.kernel, stack) : torch::call(op.handle, stack);
    if (options.profile) torch::synchronize();
    kernelTime = since(begin);
    result.kernels += kernelTime;
    if (!ok) return disagreement(index, "failed: " + ok.error().what);
    outputs.clear();
    for (const c10::IValue& value : stack) collectTensors(value, outputs);
    stack.clear();
    return {};
}

// Sizes may depend on values (masks, nonzero): then the prediction would be for another step.
Status Interpreter::State::checkSizes(OpIndex index) const {
    const auto written = [](at::IntArrayRef sizes) {
        std::string text;
        for (const std::int64_t size : sizes)
            text += (text.empty() ? "" : ", ") + std::to_string(size);
        return "[" + text + "]";
    };
    for (std::size_t j = 0; j < outputs.size(); ++j) {
        const core::OpOutput& output = graph.ops[index].outputs[j];
        const TensorShape& captured = step.shapes[output.tensor];
        if (output.makesStorage && !captured.dtype.empty() && outputs[j].sizes() != captured.sizes)
            return disagreement(index, "returned sizes " + written(outputs[j].sizes()) + " where " +
                                           written(captured.sizes) + " were captured");
    }
    return {};
}

// Some views look at nothing but what they are told: what lies beyond its storage is not ours.
Status Interpreter::State::checkPlaces(OpIndex index) const {
    for (const at::Tensor& tensor : outputs) {
        TensorShape shape;
        shape.sizes = tensor.sizes().vec();
        shape.strides = tensor.strides().vec();
        shape.offset = tensor.storage_offset();
        if (!fits(shape, tensor.itemsize(), tensor.storage().nbytes()))
            return core::badInput(
                labels[index] + " returned a tensor that is larger than its storage",
                "record the session again");
    }
    return {};
}

// Gives the results their places by the accounting rules: a first computation keeps all, a
// recomputation the wanted ones that are not there already.
Status Interpreter::State::adopt(OpIndex index, const Action& action) {
    const core::Op& op = graph.ops[index];
    for (std::size_t j = 0; j < op.outputs.size(); ++j) {
        const TensorIndex t = op.outputs[j].tensor;
        const StorageIndex s = graph.storageOf(t);
        if (op.outputs[j].makesStorage) {
            if (resident(s) || !action.wants(j)) continue;
            for (const core::Use& use : op.inputs)
                if (resident(graph.storageOf(use.tensor)) &&
                    storages[graph.storageOf(use.tensor)].is_alias_of(outputs[j].storage()))
                    return disagreement(index,
                                        "returned a view where the capture saw a new storage");
            storages[s] = outputs[j].storage();
            tensors[t] = outputs[j];
        } else if (resident(s) && action.wants(j)) {
            if (storages[s].is_alias_of(outputs[j].storage())) {
                tensors[t] = outputs[j];
            } else if (!action.recomputes()) {
                return disagreement(index, "returned a new storage where the capture saw a view");
            } else {  // a view of a duplicate: the resident sibling has the same bytes
                tensors[t] =
                    torch::makeView(storages[s], outputs[j].scalar_type(), outputs[j].sizes(),
                                    outputs[j].strides(), outputs[j].storage_offset());
            }
        }
    }
    return {};
}

StorageBytes Interpreter::State::inputsOf(OpIndex index, torch::HostView& host) const {
    StorageBytes inputs;
    for (const core::Use& use : graph.ops[index].inputs) {
        const StorageIndex s = graph.storageOf(use.tensor);
        if (resident(s)) inputs.emplace_back(s, host.of(storages[s]));
    }
    return inputs;
}

void Interpreter::State::observe(std::size_t at, OpIndex index, bool first) {
    torch::HostView host;
    OpResults results;
    results.action = at;
    results.op = index;
    results.first = first;
    for (const at::Tensor& tensor : outputs) results.outputs.push_back(host.of(tensor));
    results.inputs = inputsOf(index, host);
    for (const core::Write& write : graph.ops[index].writes)
        if (resident(write.storage))
            results.written.emplace_back(write.storage, host.of(storages[write.storage]));
    options.observer->afterOp(results);
}

void Interpreter::State::profile(OpIndex index, const OpSignature& signature, Bytes risen) {
    OpSignature& kept = result.signatures[index] = signature;
    Bytes fresh;
    for (Allocation& allocation : kept.allocations) {
        if (allocation.endEvent) continue;
        for (std::size_t j = 0; j < outputs.size(); ++j)
            if (graph.ops[index].outputs[j].makesStorage &&
                outputs[j].storage().data() == allocation.address)
                allocation.output = static_cast<int>(j);
        if (allocation.output) fresh += allocation.bytes;
    }
    result.workspaces[index] = std::max(risen - fresh, Bytes(0));
}

Status Interpreter::State::runOp(std::size_t at, const Action& action) {
    const OpIndex index = action.target;
    const CallableOp& op = ops[index];
    const bool again = action.recomputes();
    if (op.skipped) return {};
    if (op.fromRecord) {
        for (const core::OpOutput& output : graph.ops[index].outputs) {
            if (!resident(graph.storageOf(output.tensor))) continue;
            if (Status ok = defineFromRecord(output.tensor); !ok) return ok;
        }
        return {};
    }
    // A random op draws the same numbers again, and leaves the generator where it found it.
    std::vector<std::vector<std::byte>> before;
    for (std::size_t g = 0; g < op.generators.size(); ++g) {
        if (!again && !runAgain[index]) break;
        at::Generator& generator = generators[op.generators[g]];
        (again ? before : savedGenerators[index]).push_back(torch::stateOf(generator));
        if (!again) continue;
        if (Status ok = torch::setState(generator, savedGenerators[index][g]); !ok) return ok;
    }
    if (options.observer) {
        torch::HostView host;
        options.observer->beforeOp(index, inputsOf(index, host));
    }
    const Bytes live = tracker.live();
    tracker.beginWindow(&labels[index], options.arena ? &options.arena->actions[at] : nullptr,
                        options.profile);
    Status ok = callKernel(index, again);
    const Bytes highest = tracker.windowPeak();
    const OpSignature signature = tracker.endWindow();
    if (!ok) return ok;
    (again ? result.again : result.times)[index] += kernelTime;
    if (outputs.size() != graph.ops[index].outputs.size())
        return disagreement(index,
                            "returned " + std::to_string(outputs.size()) + " tensors where " +
                                std::to_string(graph.ops[index].outputs.size()) + " were captured");
    for (const at::Tensor& tensor : outputs)
        if (!tensor.has_storage())
            return disagreement(index, "returned a tensor without a storage");
    if (ok = checkPlaces(index); !ok) return ok;
    if (options.profile) profile(index, signature, highest - live);
    if (options.observer) observe(at, index, !again);
    if (index == options.watched && !again && !outputs.empty()) {
        torch::HostView host;
        result.watched = executor::elementsOf(host.of(outputs[0]));
    }
    if (ok = checkSizes(index); !ok) return ok;
    if (ok = adopt(index, action); !ok) return ok;
    outputs.clear();
    for (std::size_t g = 0; g < before.size(); ++g)
        if (ok = torch::setState(generators[op.generators[g]], before[g]); !ok) return ok;
    return {};
}

}  // namespace hw::executor

// SPDX-License-Identifier: MIT
#include "executor/replay/implementations.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

namespace hw::executor {
namespace {

using core::Bytes;
using core::Implementation;
using core::ImplementationKind;
using core::kNone;
using core::OpIndex;
using core::StorageIndex;
using core::TensorIndex;
using Json = nlohmann::json;
using Sizes = std::vector<std::int64_t>;

constexpr std::size_t kPoolInput = 1, kPoolIndices = 7;  // arguments of the pooling's gradient
constexpr std::size_t kBitsOfByte = 8;
constexpr Bytes kWorthwhile(4096);  // smaller results are not worth a choice

// Ops whose result may be written over the first argument, element by element.
const std::set<std::string>& elementWise() {
    static const std::set<std::string> names{"aten::relu",
                                             "aten::gelu",
                                             "aten::silu",
                                             "aten::sigmoid",
                                             "aten::tanh",
                                             "aten::hardtanh",
                                             "aten::add",
                                             "aten::mul",
                                             "aten::div",
                                             "aten::gelu_backward",
                                             "aten::silu_backward",
                                             "aten::threshold_backward",
                                             "aten::tanh_backward",
                                             "aten::sigmoid_backward",
                                             "aten::hardtanh_backward"};
    return names;
}

bool sameShape(const TensorShape& a, const TensorShape& b) {
    return a.dtype == b.dtype && a.sizes == b.sizes && a.strides == b.strides;
}

std::int64_t elements(const TensorShape& shape) {
    std::int64_t count = 1;
    for (const std::int64_t size : shape.sizes) count *= size;
    return count;
}

// One element behind the other in memory, in whatever order of dimensions.
bool isDense(const TensorShape& shape) {
    std::vector<std::pair<std::int64_t, std::int64_t>> byStride;
    for (std::size_t d = 0; d < shape.sizes.size(); ++d)
        if (shape.sizes[d] != 1) byStride.emplace_back(shape.strides[d], shape.sizes[d]);
    std::sort(byStride.begin(), byStride.end());
    std::int64_t expected = 1;
    for (const auto& [stride, size] : byStride) {
        if (stride != expected) return false;
        expected *= size;
    }
    return true;
}

bool isContiguous(const TensorShape& shape) {
    std::int64_t expected = 1;
    for (std::size_t d = shape.sizes.size(); d-- > 0;) {
        if (shape.sizes[d] != 1 && shape.strides[d] != expected) return false;
        expected *= shape.sizes[d];
    }
    return true;
}

class Offering {
public:
    explicit Offering(const Step& step) : step_(step), graph_(step.graph) {}

    std::vector<Implementation> all() {
        for (op_ = 0; op_ < static_cast<OpIndex>(graph_.ops.size()); ++op_) {
            const std::string& name = step_.ops[op_].name;
            const bool known = name == "aten::convolution" ||
                               name == "aten::convolution_backward" || name == "aten::relu_" ||
                               name == "aten::max_pool2d_with_indices_backward" ||
                               elementWise().contains(name);
            if (!known || !readArguments()) continue;
            if (name == "aten::convolution") convolution(0, 1, 3);
            if (name == "aten::convolution_backward" && arguments_.size() > 10 &&
                arguments_[10].is_array() && !arguments_[10].empty() && arguments_[10][0] == true)
                convolution(1, 2, 4);
            if (name == "aten::relu" || name == "aten::relu_") mask();
            if (name == "aten::max_pool2d_with_indices_backward") indicesOnly();
            if (elementWise().contains(name)) inPlace();
        }
        return std::move(offered_);
    }

private:
    bool readArguments() {
        const Json json = Json::parse(step_.ops[op_].args, nullptr, false);
        if (!json.is_object() || !json.contains("a") || !json["a"].is_array()) return false;
        arguments_ = json["a"];
        return true;
    }

    // kNone where the argument is no tensor.
    TensorIndex tensorAt(std::size_t position) const { return tensorIn(arguments_, position); }
    TensorIndex tensorIn(const Json& arguments, std::size_t position) const {
        if (position >= arguments.size()) return kNone;
        const Json& json = arguments[position];
        if (!json.is_object() || !json.contains("t") || !json["t"].is_number_integer())
            return kNone;
        const auto at = step_.tensorOf.find(json["t"].get<std::int64_t>());
        return at == step_.tensorOf.end() ? kNone : at->second;
    }

    Implementation& entry(std::string_view name, ImplementationKind kind) {
        made_ = {};
        made_.op = op_;
        made_.name = name;
        made_.kind = kind;
        return made_;
    }
    void offer() {
        if (core::implementationFault(graph_, made_).empty()) offered_.push_back(std::move(made_));
    }

    // The positions of the images, the weights, and the strides in the arguments; padding,
    // dilation, transposed, output padding and groups follow the strides.
    void convolution(std::size_t images, std::size_t weights, std::size_t strides) {
        const TensorIndex x = tensorAt(images), w = tensorAt(weights);
        if (x == kNone || w == kNone || arguments_.size() < strides + 6) return;
        const Sizes& sizes = step_.shapes[x].sizes;
        if (step_.shapes[x].dtype != "float32" || sizes.size() != 4) return;
        const auto algorithm = [&](std::string_view name) {
            entry(name, ImplementationKind::Algorithm);
            offer();
        };
        if (sizes[0] > 1) algorithm(kPerSample);
        const auto each = [&](std::size_t position, std::int64_t value) {
            const Json& list = arguments_[strides + position];
            return list.is_array() && std::all_of(list.begin(), list.end(),
                                                  [&](const Json& item) { return item == value; });
        };
        const Sizes& kernel = step_.shapes[w].sizes;
        const bool pointwise = kernel.size() == 4 && kernel[2] == 1 && kernel[3] == 1 &&
                               each(0, 1) && each(1, 0) && arguments_[strides + 3] == false &&
                               arguments_[strides + 5] == 1;
        const bool plain =
            isContiguous(step_.shapes[x]) &&
            (images == 0 || (tensorAt(0) != kNone && isContiguous(step_.shapes[tensorAt(0)])));
        if (pointwise && plain) algorithm(kOneDnn);
        if (!pointwise && arguments_[strides + 3] == false) algorithm(kColumns);
    }

    void inPlace() {
        const core::Op& op = graph_.ops[op_];
        const TensorIndex taken = tensorAt(0);
        if (taken == kNone || op.outputs.size() != 1 || !op.outputs[0].makesStorage) return;
        const TensorIndex made = op.outputs[0].tensor;
        const core::Storage& from = graph_.storages[graph_.storageOf(made)];
        const core::Storage& into = graph_.storages[graph_.storageOf(taken)];
        if (!sameShape(step_.shapes[made], step_.shapes[taken]) || from.bytes != into.bytes ||
            from.bytes < kWorthwhile || from.aliveAtEnd)
            return;
        entry(kInPlace, ImplementationKind::InPlace).takes = graph_.storageOf(taken);
        offer();
    }

    void mask() {
        const core::Op& op = graph_.ops[op_];
        if (op.outputs.size() != 1) return;
        const TensorIndex made = op.outputs[0].tensor;
        const StorageIndex s = graph_.storageOf(made);
        const TensorShape& shape = step_.shapes[made];
        if (shape.dtype != "float32" || !isDense(shape) || shape.offset != 0 ||
            elements(shape) * 4 != graph_.storages[s].bytes.count() || elements(shape) == 0)
            return;
        const std::int32_t version = op.writes.empty() ? 0 : op.writes[0].versionBefore + 1;
        for (const OpIndex reader : graph_.storages[s].readers) {
            if (reader <= op_ || !readsSigns(reader, made, version)) continue;
            Implementation& one = entry(kMask, ImplementationKind::IntermediateActivated);
            one.backward = reader;
            one.insteadOf = s;
            one.bytes = Bytes(static_cast<std::int64_t>(
                (static_cast<std::size_t>(elements(shape)) + kBitsOfByte - 1) / kBitsOfByte));
            offer();
            return;
        }
    }

    // Whether the op is the gradient of a ReLU that reads its result at this version, and all three
    // tensors lie in memory in the same way.
    bool readsSigns(OpIndex reader, TensorIndex result, std::int32_t version) const {
        const core::OpRow& row = step_.ops[reader];
        if (row.name != "aten::threshold_backward") return false;
        const core::Op& op = graph_.ops[reader];
        const Json json = Json::parse(row.args, nullptr, false);
        if (!json.is_object() || !json.contains("a") || op.outputs.size() != 1) return false;
        const Json& arguments = json["a"];
        const TensorIndex gradient = tensorIn(arguments, 0), read = tensorIn(arguments, 1);
        if (gradient == kNone || read == kNone || arguments.size() < 3 ||
            !arguments[2].is_number() || arguments[2] != 0)
            return false;
        const TensorShape& shape = step_.shapes[result];
        const StorageIndex s = graph_.storageOf(result);
        const bool same = sameShape(shape, step_.shapes[read]) && step_.shapes[read].offset == 0 &&
                          sameShape(shape, step_.shapes[gradient]) &&
                          sameShape(shape, step_.shapes[op.outputs[0].tensor]);
        if (!same || graph_.storageOf(read) != s || graph_.storageOf(gradient) == s) return false;
        return std::all_of(op.inputs.begin(), op.inputs.end(), [&](const core::Use& use) {
            return graph_.storageOf(use.tensor) != s || use.version == version;
        });
    }

    void indicesOnly() {
        const TensorIndex input = tensorAt(kPoolInput), indices = tensorAt(kPoolIndices);
        if (input == kNone || indices == kNone) return;
        const OpIndex pooling = graph_.tensors[indices].creator;
        const StorageIndex s = graph_.storageOf(input);
        if (pooling == kNone || pooling >= op_ || tensorAt(0) == kNone ||
            graph_.storageOf(tensorAt(0)) == s)
            return;
        const auto& outputs = graph_.ops[pooling].outputs;
        for (std::size_t j = 0; j < outputs.size(); ++j) {
            if (outputs[j].tensor != indices || !outputs[j].makesStorage) continue;
            Implementation& one = entry(kIndicesOnly, ImplementationKind::OutputActivated);
            one.op = pooling;
            one.backward = op_;
            one.insteadOf = s;
            one.output = static_cast<std::int32_t>(j);
            offer();
        }
    }

    const Step& step_;
    const core::TrainingGraph& graph_;
    OpIndex op_ = 0;
    Json arguments_;
    Implementation made_;
    std::vector<Implementation> offered_;
};

bool sameFlow(const Implementation& a, const Implementation& b) {
    return a.op == b.op && a.name == b.name && a.kind == b.kind && a.backward == b.backward &&
           a.insteadOf == b.insteadOf && a.output == b.output && a.takes == b.takes &&
           a.bytes == b.bytes;
}

core::Error cannotRun(const Step& step, OpIndex op, const std::string& name) {
    const bool known = op >= 0 && op < static_cast<OpIndex>(step.graph.ops.size());
    return core::badInput("this executor cannot run op " + std::to_string(op) +
                              (known ? " (" + step.graph.ops[op].name + ")" : "") + " as '" + name +
                              "'",
                          "measure what it can run with 'highwater run --implementations exact' "
                          "and plan without --menu");
}

}  // namespace

bool keepsBits(std::string_view name) {
    return name != kOneDnn && name != kColumns;
}

std::vector<Implementation> offeredImplementations(const Step& step) {
    return Offering(step).all();
}

core::Result<Step> stepUnder(const Step& step, const core::Menu& menu,
                             const core::ImplementationChoice& choice) {
    const std::vector<Implementation> offered = offeredImplementations(step);
    std::vector<Implementation> chosen;
    for (const auto& [op, name] : choice) {
        const Implementation* one = menu.find(op, name);
        if (one == nullptr ||
            std::none_of(offered.begin(), offered.end(),
                         [&](const Implementation& own) { return sameFlow(own, *one); }))
            return cannotRun(step, op, name);
        chosen.push_back(*one);
    }
    auto graph = core::applyImplementations(step.graph, menu, choice);
    if (!graph) return graph.error();
    Step under = step;
    under.graph = std::move(*graph);
    under.shapes.resize(under.graph.tensors.size());
    for (const Implementation& one : chosen) {
        if (one.backward != kNone)
            for (const core::Use& use : step.graph.ops[one.backward].inputs)
                if (step.graph.storageOf(use.tensor) == one.insteadOf)
                    under.unread[one.backward].insert(use.tensor);
        if (one.kind == ImplementationKind::IntermediateActivated)
            under.shapes[under.graph.ops[one.op].outputs.back().tensor] = {
                "uint8", {one.bytes.count()}, {1}, 0};
    }
    under.chosen = std::move(chosen);
    return under;
}

}  // namespace hw::executor

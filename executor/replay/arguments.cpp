// SPDX-License-Identifier: MIT
#include "executor/replay/arguments.h"

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>

#include "executor/replay/allowed_ops.h"

namespace hw::executor {
namespace {

using Json = nlohmann::json;
using c10::IValue;
using c10::TypeKind;
using c10::TypePtr;

// A sentence on what does not fit; caught at the border of this file.
struct Misfit {
    std::string why;
};

double parseFloat(const Json& json) {
    if (json.is_number()) return json.get<double>();
    if (!json.is_object() || !json.contains("f") || !json["f"].is_string())
        throw Misfit{"is no number"};
    const std::string text = json["f"].get<std::string>();
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0') throw Misfit{"is no number"};
    return value;
}

bool isTagged(const Json& json, const char* tag) {
    return json.is_object() && json.contains(tag);
}

c10::Scalar parseScalar(const Json& json) {
    if (json.is_boolean()) return c10::Scalar(json.get<bool>());
    if (json.is_number_integer()) return c10::Scalar(json.get<std::int64_t>());
    if (isTagged(json, "c")) {
        const Json& parts = json["c"];
        if (!parts.is_array() || parts.size() != 2) throw Misfit{"is no complex number"};
        return c10::Scalar(
            c10::complex<double>(parseFloat({{"f", parts[0]}}), parseFloat({{"f", parts[1]}})));
    }
    return c10::Scalar(parseFloat(json));
}

std::string textOf(const Json& json, const char* tag) {
    if (!isTagged(json, tag) || !json[tag].is_string()) throw Misfit{std::string("is no ") + tag};
    return json[tag].get<std::string>();
}

template <class T>
T require(const std::optional<T>& value, const Json& json) {
    if (!value) throw Misfit{"has an unknown value " + json.dump()};
    return *value;
}

class Parser {
public:
    Parser(const Step& step, const Generators& generators) : step_(step), generators_(generators) {}

    OpArgument parse(const Json& json, const TypePtr& type, std::optional<int> repeat) {
        if (isTagged(json, "opaque"))
            throw Misfit{"was not recorded (" + json["opaque"].dump() + ")"};
        TypePtr plain = type;
        if (plain->kind() == TypeKind::OptionalType) {
            if (json.is_null()) return valueArgument(IValue());
            plain = plain->castRaw<c10::OptionalType>()->getElementType();
        }
        if (plain->kind() == TypeKind::TensorType) return tensor(json);
        if (plain->kind() == TypeKind::ListType) return list(json, plain, repeat);
        return valueArgument(scalar(json, plain));
    }

    std::vector<std::int64_t> usedGenerators;

private:
    static OpArgument valueArgument(IValue value) {
        OpArgument argument;
        argument.value = std::move(value);
        return argument;
    }

    core::TensorIndex tensorIndex(const Json& json) const {
        if (json.is_null()) return core::kNone;
        if (!isTagged(json, "t") || !json["t"].is_number_integer()) throw Misfit{"is no tensor"};
        const auto at = step_.tensorOf.find(json["t"].get<std::int64_t>());
        if (at == step_.tensorOf.end()) throw Misfit{"is a tensor that the step does not know"};
        return at->second;
    }

    OpArgument tensor(const Json& json) const {
        if (json.is_null()) return valueArgument(at::Tensor());
        if (json.is_number() || json.is_boolean() || isTagged(json, "f") || isTagged(json, "c"))
            return valueArgument(torch::wrappedNumber(parseScalar(json)));
        OpArgument argument;
        argument.kind = OpArgument::Kind::Tensor;
        argument.tensors.push_back(tensorIndex(json));
        return argument;
    }

    OpArgument list(const Json& json, const TypePtr& type, std::optional<int> repeat) {
        const TypePtr element = type->castRaw<c10::ListType>()->getElementType();
        Json items = json;
        if (!json.is_array())
            items = Json::array_t(static_cast<std::size_t>(repeat.value_or(1)), json);
        const bool optional = element->kind() == TypeKind::OptionalType;
        const TypePtr inner =
            optional ? element->castRaw<c10::OptionalType>()->getElementType() : element;
        if (inner->kind() == TypeKind::TensorType) {
            OpArgument argument;
            argument.kind =
                optional ? OpArgument::Kind::OptionalTensorList : OpArgument::Kind::TensorList;
            for (const Json& item : items) argument.tensors.push_back(tensorIndex(item));
            return argument;
        }
        return valueArgument(plainList(items, element));
    }

    IValue plainList(const Json& items, const TypePtr& element) {
        switch (element->kind()) {
            case TypeKind::IntType:
            case TypeKind::SymIntType:
                return typedList<std::int64_t>(items, element);
            case TypeKind::FloatType:
                return typedList<double>(items, element);
            case TypeKind::BoolType:
                return typedList<bool>(items, element);
            case TypeKind::StringType:
                return typedList<std::string>(items, element);
            case TypeKind::NumberType: {
                c10::impl::GenericList values(c10::NumberType::get());
                for (const Json& item : items) values.push_back(IValue(parseScalar(item)));
                return values;
            }
            default:
                throw Misfit{"is a list of " + element->str()};
        }
    }

    template <class T>
    IValue typedList(const Json& items, const TypePtr& element) {
        c10::List<T> values;
        for (const Json& item : items) values.push_back(scalar(item, element).template to<T>());
        return values;
    }

    IValue scalar(const Json& json, const TypePtr& type) {
        switch (type->kind()) {
            case TypeKind::IntType:
            case TypeKind::SymIntType:
                if (json.is_number_integer()) return json.get<std::int64_t>();
                if (json.is_boolean()) return static_cast<std::int64_t>(json.get<bool>());
                return enumeration(json);
            case TypeKind::FloatType:
                return parseFloat(json);
            case TypeKind::NumberType:
                return IValue(parseScalar(json));
            case TypeKind::BoolType:
                if (json.is_number_integer()) return json.get<std::int64_t>() != 0;
                if (!json.is_boolean()) throw Misfit{"is no boolean"};
                return json.get<bool>();
            case TypeKind::StringType:
                if (!json.is_string()) throw Misfit{"is no text"};
                return json.get<std::string>();
            case TypeKind::ScalarTypeType:
            case TypeKind::LayoutType:
            case TypeKind::MemoryFormatType:
                return enumeration(json);
            case TypeKind::DeviceObjType:
                return device(json);
            case TypeKind::GeneratorType:
                return generator(json);
            default:
                throw Misfit{"has the type " + type->str() + ", which cannot be replayed"};
        }
    }

    // Boxed kernels take dtypes, layouts and memory formats as integers.
    static IValue enumeration(const Json& json) {
        if (isTagged(json, "dtype"))
            return static_cast<std::int64_t>(
                require(torch::dtypeFromName(textOf(json, "dtype")), json));
        if (isTagged(json, "layout"))
            return static_cast<std::int64_t>(
                require(torch::layoutFromName(textOf(json, "layout")), json));
        if (isTagged(json, "memory_format"))
            return static_cast<std::int64_t>(
                require(torch::memoryFormatFromName(textOf(json, "memory_format")), json));
        throw Misfit{"is no integer"};
    }

    static IValue device(const Json& json) {
        const std::string name = textOf(json, "device");
        if (!torch::device().is_cuda() && name.rfind("cpu", 0) != 0)
            throw Misfit{"names the device " + name};
        return torch::device();
    }

    IValue generator(const Json& json) {
        if (!isTagged(json, "generator") || !json["generator"].is_number_integer())
            throw Misfit{"is no generator"};
        const auto id = json["generator"].get<std::int64_t>();
        const auto at = generators_.find(id);
        if (at == generators_.end()) throw Misfit{"is a generator whose state was not recorded"};
        usedGenerators.push_back(id);
        return IValue(at->second);
    }

    const Step& step_;
    const Generators& generators_;
};

// Running statistics are updated by these ops without a word in their schema. Left out, results are
// the same in training; in evaluation they are read and must stay.
std::vector<std::size_t> leftOut(const std::string& name, const c10::FunctionSchema& schema,
                                 const std::vector<OpArgument>& arguments) {
    static const std::set<std::string> updating{"aten::native_batch_norm", "aten::cudnn_batch_norm",
                                                "aten::miopen_batch_norm",
                                                "aten::_batch_norm_impl_index"};
    std::vector<std::size_t> positions;
    if (!updating.contains(name)) return positions;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const std::string& argument = schema.arguments()[i].name();
        if (argument == "training" && arguments[i].value.isBool() && !arguments[i].value.toBool())
            return {};
        if (argument == "running_mean" || argument == "running_var") positions.push_back(i);
    }
    return positions;
}

// A tensor is set upon a storage that the session names by the tensor only, such as that of a
// loader's batch: the tensor is as it was recorded.
bool adoptsStorage(const Step& step, core::OpIndex index) {
    const core::OpRow& row = step.ops[index];
    if (row.name != "aten::set_" || row.overload.rfind("source_Storage", 0) != 0) return false;
    const auto& outputs = step.graph.ops[index].outputs;
    return std::none_of(outputs.begin(), outputs.end(),
                        [](const core::OpOutput& output) { return output.makesStorage; });
}

std::vector<std::string> namesOfArguments(const core::Result<c10::OperatorHandle>& op) {
    std::vector<std::string> names;
    if (!op) return names;
    for (const c10::Argument& argument : op->schema().arguments()) names.push_back(argument.name());
    return names;
}

/// Of meta tensors a recording knows nothing, and they have no bytes.
bool touchesNothing(const Step& step, core::OpIndex index) {
    const core::Op& op = step.graph.ops[index];
    return !op.random && op.inputs.empty() && op.outputs.empty() && op.writes.empty();
}

}  // namespace

core::Result<CallableOp> makeCallable(const Step& step, core::OpIndex index,
                                      const Generators& generators) {
    const core::OpRow& row = step.ops[index];
    const std::string label = "op " + std::to_string(index) + " (" + row.name + ")";
    const Json json = Json::parse(row.args, nullptr, false);
    if (!json.is_object() || !json.contains("a") || !json["a"].is_array())
        return core::badInput(label + " has no arguments to replay", "record the session again");
    auto handle = torch::findOp(row.name, row.overload);
    const core::Status allowed = torch::cameWithLibrary(row.name)
                                     ? core::Status()
                                     : requireAllowed(row.name, namesOfArguments(handle));
    if (!allowed)
        return core::badInput("op " + std::to_string(index) + ": " + allowed.error().what,
                              allowed.error().hint);
    if (!handle) return handle.error();
    CallableOp op{*handle, {}, {}, {}, row.name.rfind("profiler::", 0) == 0, false, {}};
    op.skipped = op.skipped || touchesNothing(step, index);
    op.fromRecord = adoptsStorage(step, index);
    if (op.skipped || op.fromRecord) return op;
    const Json keywords = json.value("k", Json::object());
    const auto& schema = op.handle.schema().arguments();
    if (json["a"].size() > schema.size())
        return core::badInput(label + " has more arguments than its schema",
                              "record the session again");
    Parser parser(step, generators);
    for (std::size_t i = 0; i < schema.size(); ++i) {
        try {
            const Json* given = i < json["a"].size() ? &json["a"][i] : nullptr;
            if (!given && keywords.contains(schema[i].name())) given = &keywords[schema[i].name()];
            if (given) {
                const auto count = schema[i].N();
                op.arguments.push_back(
                    parser.parse(*given, schema[i].real_type(),
                                 count ? std::optional<int>(*count) : std::nullopt));
            } else {
                op.arguments.emplace_back();
                if (schema[i].default_value())
                    op.arguments.back().value = *schema[i].default_value();
                else if (schema[i].type()->kind() != TypeKind::OptionalType)
                    throw Misfit{"is missing"};
            }
            op.arguments.back().written =
                schema[i].alias_info() && schema[i].alias_info()->isWrite();
        } catch (const Misfit& misfit) {
            return core::badInput(
                label + " cannot be replayed: argument '" + schema[i].name() + "' " + misfit.why,
                "recording it again does not help; a plan for it can still be made and checked");
        } catch (const std::exception& error) {
            return core::badInput(label + " cannot be replayed: argument '" + schema[i].name() +
                                      "': " + std::string(error.what()).substr(0, 200),
                                  "record the session again");
        }
    }
    op.leftOutOnRecompute = leftOut(row.name, op.handle.schema(), op.arguments);
    if (row.random) op.generators = parser.usedGenerators;
    if (row.random && op.generators.empty()) op.generators.push_back(0);
    return op;
}

}  // namespace hw::executor

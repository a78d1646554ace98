// SPDX-License-Identifier: MIT
#include "core/import/execution_nodes.h"

#include <nlohmann/json.hpp>
#include <string_view>

#include "core/import/checked.h"
#include "core/import/json_source.h"

namespace hw::core {
namespace {

using nlohmann::json;

std::int64_t integer(const json& value) {
    return value.is_number_integer() ? value.get<std::int64_t>() : 0;
}
std::int64_t integer(const json& object, const char* key) {
    const auto at = object.find(key);
    return at == object.end() ? 0 : integer(*at);
}
std::string text(const json& object, const char* key) {
    const auto at = object.find(key);
    return at != object.end() && at->is_string() ? at->get<std::string>() : std::string();
}

// Values, types and shapes run in parallel; lists of tensors nest once more.
class TensorList {
public:
    TensorList(const json& types, const json& shapes) : types_(types), shapes_(shapes) {}

    std::vector<ExecutionTensor> read(const json& values) {
        if (!values.is_array()) return {};
        for (std::size_t i = 0; i < values.size(); ++i) {
            const std::string_view type = textAt(types_, i);
            argument_ = static_cast<std::int32_t>(i);
            if (type.starts_with("Tensor("))
                add(values[i], type, at(shapes_, i));
            else if (type.find("Tensor(") != std::string_view::npos && values[i].is_array())
                for (std::size_t k = 0; k < values[i].size(); ++k)
                    add(values[i][k], type, at(at(shapes_, i), k));
        }
        return std::move(tensors_);
    }

private:
    static const json& at(const json& list, std::size_t i) {
        static const json kNothing;
        return list.is_array() && i < list.size() ? list[i] : kNothing;
    }
    static std::string_view textAt(const json& list, std::size_t i) {
        const json& value = at(list, i);
        return value.is_string() ? std::string_view(value.get_ref<const std::string&>())
                                 : std::string_view();
    }
    void add(const json& value, std::string_view type, const json& shape) {
        if (!value.is_array() || value.size() < 5) return;
        ExecutionTensor tensor;
        tensor.id = integer(value[0]), tensor.storage = integer(value[1]);
        tensor.offset = integer(value[2]), tensor.elements = integer(value[3]);
        tensor.itemBytes = integer(value[4]);
        if (tensor.storage == 0) return;  // an undefined tensor
        if (value.size() > 5 && value[5].is_string()) tensor.device = value[5];
        const std::size_t from = type.find("Tensor(") + 7;
        tensor.dtype = type.substr(from, type.find(')', from) - from);
        tensor.sizes = shape.is_array() ? shape.dump(-1, ' ', true) : "[]";
        tensor.argument = argument_;
        tensors_.push_back(std::move(tensor));
    }

    const json& types_;
    const json& shapes_;
    std::int32_t argument_ = 0;
    std::vector<ExecutionTensor> tensors_;
};

std::vector<ExecutionTensor> tensorsOf(const json& node, const char* side, const char* prefix) {
    static const json kNothing;
    const auto member = [](const json& object, const std::string& key) -> const json& {
        const auto at = object.find(key);
        return at == object.end() ? kNothing : *at;
    };
    const json& values = member(node, side);
    if (values.is_object())  // 1.1.0 and later
        return TensorList(member(values, "types"), member(values, "shapes"))
            .read(member(values, "values"));
    const std::string flat = prefix;
    return TensorList(member(node, flat + "_types"), member(node, flat + "_shapes")).read(values);
}

void readAttributes(const json& node, ExecutionNode& into) {
    const auto attributes = node.find("attrs");
    if (attributes == node.end() || !attributes->is_array()) {
        into.recordFunction = integer(node, "rf_id"), into.thread = integer(node, "tid");
        into.forwardParent = integer(node, "fw_parent");
        into.schema = text(node, "op_schema"), into.parent = integer(node, "parent");
        return;
    }
    into.parent = integer(node, "ctrl_deps");
    for (const json& attribute : *attributes) {
        if (!attribute.is_object()) continue;
        const std::string name = text(attribute, "name");
        if (name == "rf_id") into.recordFunction = integer(attribute, "value");
        if (name == "tid") into.thread = integer(attribute, "value");
        if (name == "fw_parent") into.forwardParent = integer(attribute, "value");
        if (name == "op_schema") into.schema = text(attribute, "value");
    }
}

}  // namespace

std::int64_t ExecutionTensor::bytes() const {
    const std::int64_t bytes = checkedMultiply(checkedAdd(offset, elements), itemBytes);
    if (offset < 0 || elements < 0 || itemBytes < 0)
        throw std::invalid_argument("a tensor has a negative size");
    return bytes;
}

ExecutionNodes readExecutionNodes(TextSource& source) {
    ExecutionNodes found;
    JsonSource input(source);
    std::string section;
    // Each node is taken when it is whole and then dropped; what is not asked for is never kept.
    const auto each = [&](int depth, json::parse_event_t event, json& value) {
        input.tokenEnded();
        if (event == json::parse_event_t::key && depth == 1) {
            section = value.get<std::string>();
            return section == "schema" || section == "pid" || section == "nodes";
        }
        if (event == json::parse_event_t::value && depth == 1) {
            if (section == "schema" && value.is_string()) found.schema = value;
            if (section == "pid") found.pid = integer(value);
        }
        if (event != json::parse_event_t::object_end || depth != 2 || section != "nodes")
            return true;
        ExecutionNode node;
        node.id = integer(value, "id"), node.name = text(value, "name");
        readAttributes(value, node);
        if (node.id == 0 || node.name.empty()) {
            ++found.unreadable;
        } else {
            node.inputs = tensorsOf(value, "inputs", "input");
            node.outputs = tensorsOf(value, "outputs", "output");
            found.nodes.push_back(std::move(node));
        }
        return false;
    };
    try {
        const json rest = json::parse(input.begin(), input.end(), each);
        if (!rest.is_object()) found.stopped = "it is no object";
    } catch (const json::exception& error) {
        const std::string said = error.what();
        found.stopped = said.substr(std::min(said.find("] ") + 2, said.size()));
    }
    if (!input.error().empty()) found.stopped = input.error();
    if (!found.stopped.empty())
        found.stopped = "byte " + std::to_string(input.position()) + ": " + found.stopped;
    return found;
}

}  // namespace hw::core

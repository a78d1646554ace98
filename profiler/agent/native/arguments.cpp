// SPDX-License-Identifier: MIT
#include "arguments.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/jit_type.h>

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "registry.h"

namespace hw::profiler::native {
namespace {

std::string hexFloat(double value) {
    char text[40];
    std::snprintf(text, sizeof(text), "%a", value);
    return text;
}

std::string tagged(const char* tag, const std::string& value) {
    return std::string("{\"") + tag + "\":\"" + value + "\"}";
}

const char* layoutName(std::int64_t layout) {
    return layout == static_cast<std::int64_t>(at::kStrided)  ? "strided"
           : layout == static_cast<std::int64_t>(at::kSparse) ? "sparse_coo"
                                                              : nullptr;
}

const char* memoryFormatName(std::int64_t format) {
    switch (static_cast<at::MemoryFormat>(format)) {
        case at::MemoryFormat::Contiguous:
            return "contiguous_format";
        case at::MemoryFormat::Preserve:
            return "preserve_format";
        case at::MemoryFormat::ChannelsLast:
            return "channels_last";
        case at::MemoryFormat::ChannelsLast3d:
            return "channels_last_3d";
        default:
            return nullptr;
    }
}

class Encoder {
public:
    explicit Encoder(ArgumentVisitor& visitor) : visitor_(visitor) {}

    void value(const c10::IValue& item, c10::TypeKind kind, std::string& out) {
        if (item.isNone()) {
            out += "null";
        } else if (item.isTensor()) {
            tensor(item.toTensor(), out);
        } else if (item.isBool()) {
            out += item.toBool() ? "true" : "false";
        } else if (item.isInt()) {
            integer(item.toInt(), kind, out);
        } else if (item.isDouble()) {
            out += tagged("f", hexFloat(item.toDouble()));
        } else if (item.isComplexDouble()) {
            const auto complex = item.toComplexDouble();
            out += "{\"c\":[\"" + hexFloat(complex.real()) + "\",\"" + hexFloat(complex.imag()) +
                   "\"]}";
        } else if (item.isString()) {
            out += quoted(item.toStringRef());
        } else if (item.isDevice()) {
            out += tagged("device", item.toDevice().str());
        } else if (item.isGenerator()) {
            out += "{\"generator\":" + std::to_string(visitor_.generator(item.toGenerator())) + "}";
        } else {
            several(item, out);
        }
    }

private:
    void tensor(const at::Tensor& tensor, std::string& out) {
        if (!tensor.defined()) {
            out += "null";
            return;
        }
        if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) {
            wrapped(tensor, out);
            return;
        }
        const std::int64_t id = visitor_.tensor(tensor);
        if (id < 0) {
            out += "{\"opaque\":\"Tensor\"}";
            return;
        }
        out += "{\"t\":";
        number(id, out);
        out += '}';
    }

    /// A number that the program gave where an op takes a tensor: a scalar on the host.
    void wrapped(const at::Tensor& tensor, std::string& out) {
        const void* data = tensor.unsafeGetTensorImpl()->data();
        switch (tensor.scalar_type()) {
            case at::kDouble:
                value(*static_cast<const double*>(data), c10::TypeKind::FloatType, out);
                break;
            case at::kLong:
                value(*static_cast<const std::int64_t*>(data), c10::TypeKind::IntType, out);
                break;
            case at::kBool:
                value(*static_cast<const bool*>(data), c10::TypeKind::BoolType, out);
                break;
            case at::kComplexDouble:
                value(*static_cast<const c10::complex<double>*>(data), c10::TypeKind::ComplexType,
                      out);
                break;
            default:
                out += "{\"opaque\":\"number\"}";
        }
    }

    static void number(std::int64_t value, std::string& out) {
        char digits[24];
        out.append(digits, std::to_chars(digits, digits + sizeof(digits), value).ptr);
    }

    static void integer(std::int64_t value, c10::TypeKind kind, std::string& out) {
        const char* name = nullptr;
        const char* tag = nullptr;
        if (kind == c10::TypeKind::ScalarTypeType) {
            tag = "dtype";
            name = dtypeName(static_cast<at::ScalarType>(value));
        } else if (kind == c10::TypeKind::LayoutType) {
            tag = "layout";
            name = layoutName(value);
        } else if (kind == c10::TypeKind::MemoryFormatType) {
            tag = "memory_format";
            name = memoryFormatName(value);
        } else {
            number(value, out);
            return;
        }
        out += name != nullptr ? tagged(tag, name) : tagged("opaque", tag);
    }

    void several(const c10::IValue& item, std::string& out) {
        const auto list = [&](const auto& items, auto&& each) {
            out += '[';
            bool first = true;
            for (const auto& one : items) {
                if (!first) out += ',';
                first = false;
                each(one);
            }
            out += ']';
        };
        if (item.isIntList())
            list(item.toIntVector(), [&](std::int64_t one) { number(one, out); });
        else if (item.isDoubleList())
            list(item.toDoubleVector(), [&](double one) { out += tagged("f", hexFloat(one)); });
        else if (item.isTensorList())
            list(item.toTensorVector(), [&](const at::Tensor& one) { tensor(one, out); });
        else if (item.isTuple())
            list(item.toTupleRef().elements(),
                 [&](const c10::IValue& one) { value(one, c10::TypeKind::AnyType, out); });
        else if (item.isList())
            list(item.toListRef(),
                 [&](const c10::IValue& one) { value(one, c10::TypeKind::AnyType, out); });
        else
            out += "{\"opaque\":" + quoted(item.tagKind()) + "}";
    }

    ArgumentVisitor& visitor_;
};

bool isDefault(const OperatorArgument& argument, const c10::IValue& value) {
    if (argument.standard == nullptr) return false;
    const c10::IValue& standard = *argument.standard;
    if (standard.isNone() || value.isNone()) return standard.isNone() && value.isNone();
    if (value.isTensor() || standard.isTensor()) return false;
    return standard == value;
}

}  // namespace

void encodeArguments(const Operator& op, c10::ArrayRef<const c10::IValue> values,
                     ArgumentVisitor& visitor, std::string& out) {
    Encoder encoder(visitor);
    const auto& arguments = op.arguments;
    const std::size_t count = std::min(arguments.size(), values.size());
    std::size_t positional = 0, kept = 0;
    for (; positional < count && !arguments[positional].keyword; ++positional)
        if (!isDefault(arguments[positional], values[positional])) kept = positional + 1;
    out += "{\"a\":[";
    for (std::size_t i = 0; i < kept; ++i) {
        if (i > 0) out += ',';
        encoder.value(values[i], arguments[i].kind, out);
    }
    out += "],\"k\":{";
    bool first = true;
    for (std::size_t i = positional; i < count; ++i) {
        if (isDefault(arguments[i], values[i])) continue;
        if (!first) out += ',';
        first = false;
        out += arguments[i].key;
        encoder.value(values[i], arguments[i].kind, out);
    }
    out += "}}";
}

}  // namespace hw::profiler::native

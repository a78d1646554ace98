// SPDX-License-Identifier: MIT
#include "arguments.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/jit_type.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>

#include "registry.h"

namespace hw::profiler::native {
namespace {

/// As printf's %a.
void hexFloat(double value, Buffer& out) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof(bits));
    const auto exponent = static_cast<int>(bits >> 52 & 0x7ff);
    char* end = out.end();
    if (exponent == 0 || exponent == 0x7ff) {  // zero, subnormal, infinite or none
        out.wrote(end + std::snprintf(end, Buffer::kRoom / 4, "%a", value));
        return;
    }
    if (bits >> 63 != 0) *end++ = '-';
    *end++ = '0';
    *end++ = 'x';
    *end++ = '1';
    std::uint64_t fraction = bits << 12;
    if (fraction != 0) *end++ = '.';
    for (; fraction != 0; fraction <<= 4) *end++ = "0123456789abcdef"[fraction >> 60];
    *end++ = 'p';
    if (exponent >= 1023) *end++ = '+';
    out.wrote(std::to_chars(end, end + 8, exponent - 1023).ptr);
}

void number(std::int64_t value, Buffer& out) {
    out.wrote(std::to_chars(out.end(), out.end() + 24, value).ptr);
}

void tagged(std::string_view tag, std::string_view value, Buffer& out) {
    out.put("{\"");
    out.append(tag);
    out.put("\":\"");
    out.append(value);
    out.put("\"}");
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

    void value(const c10::IValue& item, c10::TypeKind kind, Buffer& out) {
        out.reserve();
        if (item.isNone()) {
            out.put("null");
        } else if (item.isTensor()) {
            tensor(item.toTensor(), out);
        } else if (item.isBool()) {
            out.append(item.toBool() ? "true" : "false");
        } else if (item.isInt()) {
            integer(item.toInt(), kind, out);
        } else if (item.isDouble()) {
            floating(item.toDouble(), out);
        } else if (item.isComplexDouble()) {
            const auto complex = item.toComplexDouble();
            out.put("{\"c\":[\"");
            hexFloat(complex.real(), out);
            out.put("\",\"");
            hexFloat(complex.imag(), out);
            out.put("\"]}");
        } else if (item.isString()) {
            out.append(quoted(item.toStringRef()));
        } else if (item.isDevice()) {
            tagged("device", item.toDevice().str(), out);
        } else if (item.isGenerator()) {
            out.put("{\"generator\":");
            number(visitor_.generator(item.toGenerator()), out);
            out.put("}");
        } else {
            several(item, out);
        }
    }

private:
    void tensor(const at::Tensor& tensor, Buffer& out) {
        if (!tensor.defined()) {
            out.put("null");
            return;
        }
        if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) {
            wrapped(tensor, out);
            return;
        }
        const std::int64_t id = visitor_.tensor(tensor);
        if (id < 0) {
            out.put("{\"opaque\":\"Tensor\"}");
            return;
        }
        out.put("{\"t\":");
        number(id, out);
        out.put("}");
    }

    /// A number that the program gave where an op takes a tensor: a scalar on the host.
    void wrapped(const at::Tensor& tensor, Buffer& out) {
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
                out.put("{\"opaque\":\"number\"}");
        }
    }

    static void floating(double value, Buffer& out) {
        out.put("{\"f\":\"");
        hexFloat(value, out);
        out.put("\"}");
    }

    static void integer(std::int64_t value, c10::TypeKind kind, Buffer& out) {
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
        tagged(name != nullptr ? tag : "opaque", name != nullptr ? name : tag, out);
    }

    void several(const c10::IValue& item, Buffer& out) {
        if (item.isTuple()) {
            list(item.toTupleRef().elements(), out);
        } else if (item.isList()) {
            list(item.toListRef(), out);
        } else {
            out.put("{\"opaque\":");
            out.append(quoted(item.tagKind()));
            out.put("}");
        }
    }
    template <typename Items>
    void list(const Items& items, Buffer& out) {
        out.put("[");
        bool first = true;
        for (const c10::IValue& one : items) {
            if (!first) out.put(",");
            first = false;
            value(one, c10::TypeKind::AnyType, out);
        }
        out.put("]");
    }

    ArgumentVisitor& visitor_;
};

bool isDefault(const OperatorArgument& argument, const c10::IValue& value) {
    if (argument.standard == nullptr) return false;
    const c10::IValue& standard = *argument.standard;
    if (standard.isNone() || value.isNone()) return standard.isNone() && value.isNone();
    if (value.isTensor() || standard.isTensor()) return false;
    if (value.isBool() && standard.isBool()) return value.toBool() == standard.toBool();
    if (value.isInt() && standard.isInt()) return value.toInt() == standard.toInt();
    if (value.isDouble() && standard.isDouble()) return value.toDouble() == standard.toDouble();
    return standard == value;  // many times as slow
}

}  // namespace

void encodeArguments(const Operator& op, c10::ArrayRef<const c10::IValue> values,
                     ArgumentVisitor& visitor, Buffer& out) {
    Encoder encoder(visitor);
    const auto& arguments = op.arguments;
    const std::size_t count = std::min(arguments.size(), values.size());
    std::size_t positional = 0, kept = 0;
    for (; positional < count && !arguments[positional].keyword; ++positional)
        if (!isDefault(arguments[positional], values[positional])) kept = positional + 1;
    out.reserve();
    out.put("{\"a\":[");
    for (std::size_t i = 0; i < kept; ++i) {
        if (i > 0) out.put(",");
        encoder.value(values[i], arguments[i].kind, out);
    }
    out.put("],\"k\":{");
    bool first = true;
    for (std::size_t i = positional; i < count; ++i) {
        if (isDefault(arguments[i], values[i])) continue;
        if (!first) out.put(",");
        first = false;
        out.append(arguments[i].key);
        encoder.value(values[i], arguments[i].kind, out);
    }
    out.put("}}");
}

}  // namespace hw::profiler::native

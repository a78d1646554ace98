// SPDX-License-Identifier: MIT
// Python pickles as data: builtin values only. Whatever would import a name, call something or
// rebuild an object ends the reading; nothing in the file is ever executed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/result.h"
#include "core/import/text_source.h"

namespace hw::core {

/// A value of a PickleDocument. Containers may be shared between values, and may even hold
/// themselves: they are to be walked to a fixed depth only.
using PickleRef = std::uint32_t;

struct PickleLimits {
    std::size_t values = 100'000'000;          // of all kinds
    std::size_t bytes = std::size_t{2} << 30;  // of text, numbers and references together
    std::size_t stack = 10'000'000;            // values that wait to be put into a container
};

class PickleDocument {
public:
    enum class Kind : std::uint8_t { None, Bool, Int, BigInt, Float, Text, Bytes, List, Dict };

    /// Reads one pickle of any protocol up to 5. Errors: BadInput when it is damaged, cut short,
    /// beyond the limits, or asks for anything but builtin values.
    static Result<PickleDocument> read(TextSource& source, const PickleLimits& limits = {});

    PickleRef root() const { return root_; }
    Kind kind(PickleRef value) const { return values_[value].kind; }
    bool isList(PickleRef value) const { return kind(value) == Kind::List; }  // tuples too
    bool isDict(PickleRef value) const { return kind(value) == Kind::Dict; }

    /// Items of a list or tuple; empty for anything else.
    const std::vector<PickleRef>& items(PickleRef value) const;
    /// The value of a text key of a dict, the last one written; none when there is no such key.
    std::optional<PickleRef> find(PickleRef dict, std::string_view key) const;
    /// Bool and Int; a BigInt up to 64 bits as its two's complement. None for anything else.
    std::optional<std::int64_t> integer(PickleRef value) const;
    std::optional<std::string_view> text(PickleRef value) const;

private:
    friend class PickleMachine;
    struct Value {
        Kind kind = Kind::None;
        std::int64_t payload = 0;  // the number, or where text or items lie
    };

    std::vector<Value> values_;
    std::vector<std::string> texts_;                // Text, Bytes, BigInt (little endian)
    std::vector<std::vector<PickleRef>> children_;  // List: items; Dict: key, value, key, …
    PickleRef root_ = 0;
};

}  // namespace hw::core

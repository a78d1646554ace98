// SPDX-License-Identifier: MIT
// The fields of a frame (profiler/wire/format.h), one after the other.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace hw::profiler::cupti {

class Payload {
public:
    template <class Value>
    requires std::is_trivially_copyable_v<Value> Payload& put(const Value& value) {
        bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
        return *this;
    }
    Payload& text(std::string_view text) {
        put(static_cast<std::uint32_t>(text.size()));
        bytes_.append(text);
        return *this;
    }
    operator const std::string&() const { return bytes_; }

private:
    std::string bytes_;
};

}  // namespace hw::profiler::cupti

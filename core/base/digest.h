// SPDX-License-Identifier: MIT
// SHA-256 over a stream of integers and strings, for fingerprints.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace hw::core {

class Digest {
public:
    Digest();
    ~Digest();
    Digest(const Digest&) = delete;
    Digest& operator=(const Digest&) = delete;

    void add(std::int64_t value);     // as 8 bytes, little endian
    void add(std::string_view text);  // its length, then its bytes
    std::string hex();                // 64 hexadecimal digits; ends the stream

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace hw::core

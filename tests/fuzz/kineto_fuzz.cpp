// SPDX-License-Identifier: MIT
#include "core/import/kineto.h"
#include "tests/fuzz/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    return hw::fuzz::import(data, size, [](auto& source, auto& session) {
        return hw::core::importKineto(source, session);
    });
}

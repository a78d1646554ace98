// SPDX-License-Identifier: MIT
#include "core/import/memory_timeline.h"
#include "tests/fuzz/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    return hw::fuzz::import(data, size, hw::core::importMemoryTimeline);
}

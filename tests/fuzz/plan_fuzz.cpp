// SPDX-License-Identifier: MIT
#include "core/plan/plan.h"
#include "tests/fuzz/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto plan = hw::core::parsePlan(std::string(reinterpret_cast<const char*>(data), size));
    if (!plan)
        hw::fuzz::requireClear(plan.error());
    else
        hw::core::writePlan(*plan);
    return 0;
}

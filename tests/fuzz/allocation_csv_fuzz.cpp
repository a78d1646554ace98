// SPDX-License-Identifier: MIT
#include "core/import/allocation_csv.h"
#include "tests/fuzz/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto problem = hw::core::readAllocationCsv(hw::fuzz::fileOf(data, size));
    if (!problem) hw::fuzz::requireClear(problem.error());
    return 0;
}

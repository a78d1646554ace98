// SPDX-License-Identifier: MIT
#include "core/import/import.h"
#include "tests/fuzz/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    auto session = hw::core::openAny(hw::fuzz::fileOf(data, size));
    if (!session)
        hw::fuzz::requireClear(session.error());
    else
        hw::fuzz::use(*session);
    return 0;
}

// SPDX-License-Identifier: MIT
#include "core/import/nsight.h"

#include "tests/fuzz/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string path = hw::fuzz::fileOf(data, size);
    if (!hw::core::isNsightFile(path)) return 0;
    hw::core::SessionWriter session = hw::core::SessionWriter::inMemory();
    const auto done = hw::core::importNsight(path, session);
    if (done)
        hw::fuzz::use(session);
    else
        hw::fuzz::requireClear(done.error());
    return 0;
}

// SPDX-License-Identifier: MIT
// Files as importers read them: plain, gzip, or in a tar archive.
#include <array>
#include <cstdlib>

#include "tests/fuzz/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string path = hw::fuzz::fileOf(data, size);
    auto bytes = hw::core::TextSource::open(path);
    if (!bytes) {
        hw::fuzz::requireClear(bytes.error());
        return 0;
    }
    std::size_t read = 0;
    std::array<char, 4096> part{};
    for (std::size_t got = 1; got > 0; read += got) got = bytes->read(part.data(), part.size());
    auto lines = hw::core::TextSource::open(path);
    if (!lines) std::abort();
    std::size_t inLines = 0;
    for (std::string line; lines->next(line);) inLines += line.size();
    if (inLines > read) std::abort();
    return 0;
}

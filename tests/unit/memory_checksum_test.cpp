// SPDX-License-Identifier: MIT
#include "profiler/agent/checksum.h"

#include <gtest/gtest.h>

#include <numeric>
#include <optional>
#include <vector>

#ifdef __x86_64__
#include <cpuid.h>
#endif

using hw::profiler::agent::checksum;

namespace {

std::vector<unsigned char> someBytes() {
    std::vector<unsigned char> bytes(1 << 20);
    std::iota(bytes.begin(), bytes.end(), static_cast<unsigned char>(7));
    return bytes;
}

#ifdef __x86_64__
/// Whether the upper halves of vector registers are in use: XINUSE, Intel's manual, volume 1,
/// section 13.3. None: the processor does not say.
std::optional<bool> upperHalvesInUse() {
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid_count(0xd, 1, &a, &b, &c, &d) == 0 || (a & 4) == 0) return std::nullopt;
    __asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(1));
    return (a & 4) != 0;
}
#endif

}  // namespace

TEST(MemoryChecksum, ASampleReadsTheFirstAndTheLastBytes) {
    const std::vector<unsigned char> bytes = someBytes();
    const auto size = static_cast<std::int64_t>(bytes.size());
    for (const std::int64_t every : {1, 16}) {
        const std::uint64_t sum = checksum(bytes.data(), size, every, 3);
        EXPECT_EQ(checksum(bytes.data(), size, every, 3), sum);
        for (const std::size_t at : {std::size_t{0}, bytes.size() - 1}) {
            std::vector<unsigned char> other = bytes;
            other[at] ^= 1;
            EXPECT_NE(checksum(other.data(), size, every, 3), sum) << every << " " << at;
        }
    }
}

#ifdef __x86_64__
/// Code of the program's without AVX would take twice as long from there on.
TEST(MemoryChecksum, LeavesNoUpperHalvesOfRegistersInUse) {
    const std::vector<unsigned char> bytes = someBytes();
    if (!__builtin_cpu_supports("avx2")) GTEST_SKIP() << "this processor has no AVX2";
    __asm__ volatile("vzeroupper" ::: "memory");
    if (upperHalvesInUse().value_or(true)) GTEST_SKIP() << "this processor does not say";
    static_cast<void>(checksum(bytes.data(), static_cast<std::int64_t>(bytes.size()), 1, 0));
    EXPECT_EQ(upperHalvesInUse(), false);
    static_cast<void>(checksum(bytes.data(), static_cast<std::int64_t>(bytes.size()), 16, 3));
    EXPECT_EQ(upperHalvesInUse(), false);
}
#endif

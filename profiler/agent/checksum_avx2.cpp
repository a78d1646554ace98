// SPDX-License-Identifier: MIT
// Compiled with -mavx2 (profiler/CMakeLists.txt); called where the processor has it.
#include <immintrin.h>

#include "profiler/agent/checksum_kernel.h"

namespace hw::profiler::agent {

/// The optimization options that xxhash.h sets leave out what compilers do by themselves: with the
/// upper halves of registers in use, code of the program's without AVX (BLAS) takes twice as long.
std::uint64_t checksumWithAvx2(const void* data, std::int64_t bytes, std::int64_t every,
                               std::int64_t phase) {
    const std::uint64_t sum = checksumOf(data, bytes, every, phase);
    _mm256_zeroupper();
    return sum;
}

}  // namespace hw::profiler::agent

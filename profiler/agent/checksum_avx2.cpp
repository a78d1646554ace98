// SPDX-License-Identifier: MIT
// Compiled with -mavx2 (profiler/CMakeLists.txt); called where the processor has it.
#include "profiler/agent/checksum_kernel.h"

namespace hw::profiler::agent {

std::uint64_t checksumWithAvx2(const void* data, std::int64_t bytes, std::int64_t every,
                               std::int64_t phase) {
    return checksumOf(data, bytes, every, phase);
}

}  // namespace hw::profiler::agent

// SPDX-License-Identifier: MIT
#include "profiler/agent/checksum_kernel.h"

namespace hw::profiler::agent {

#ifdef __x86_64__
std::uint64_t checksumWithAvx2(const void* data, std::int64_t bytes, std::int64_t every,
                               std::int64_t phase);

std::uint64_t checksum(const void* data, std::int64_t bytes, std::int64_t every,
                       std::int64_t phase) {
    return __builtin_cpu_supports("avx2") ? checksumWithAvx2(data, bytes, every, phase)
                                          : checksumOf(data, bytes, every, phase);
}
#else
std::uint64_t checksum(const void* data, std::int64_t bytes, std::int64_t every,
                       std::int64_t phase) {
    return checksumOf(data, bytes, every, phase);
}
#endif

}  // namespace hw::profiler::agent

// SPDX-License-Identifier: MIT
// Checksums of memory: XXH3 of 64 bits (libxxhash), over all bytes or over a sample of them.
#pragma once

#include <cstdint>

namespace hw::profiler::agent {

/// Bytes that are read or skipped together.
inline constexpr std::int64_t kChecksumChunk = 1024;

/// Of `bytes` bytes at `data`. `every`: of so many chunks one is read, 1 reads all; the first and
/// the last chunk are always read. `phase`: which of them. Two checksums compare only where bytes,
/// `every` and `phase` are the same.
std::uint64_t checksum(const void* data, std::int64_t bytes, std::int64_t every,
                       std::int64_t phase);

}  // namespace hw::profiler::agent

// SPDX-License-Identifier: MIT
// The body of checksum(), compiled once for any processor and once for those with AVX2: the same
// sums, the second one twice as fast.
#pragma once

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "profiler/agent/checksum.h"

namespace hw::profiler::agent {
namespace {

inline std::uint64_t checksumOf(const void* data, std::int64_t bytes, std::int64_t every,
                                std::int64_t phase) {
    if (every <= 1 || bytes <= 4 * kChecksumChunk)
        return XXH3_64bits(data, static_cast<std::size_t>(bytes));
    const auto* const from = static_cast<const unsigned char*>(data);
    const auto chunk = [&](std::int64_t at, std::uint64_t before) {
        const std::int64_t left = bytes - at;
        const std::int64_t size = left < kChecksumChunk ? left : kChecksumChunk;
        return XXH3_64bits_withSeed(from + at, static_cast<std::size_t>(size), before);
    };
    const std::int64_t last = (bytes - 1) / kChecksumChunk;
    std::uint64_t sum = chunk(0, 0);
    for (std::int64_t i = 1 + phase % every; i < last; i += every)
        sum = chunk(i * kChecksumChunk, sum);
    return chunk(last * kChecksumChunk, sum);
}

}  // namespace
}  // namespace hw::profiler::agent

// SPDX-License-Identifier: MIT
// The clock of all records.
#pragma once

#include <time.h>

#include <cstdint>

namespace hw::profiler::agent {

/// Nanoseconds of CLOCK_MONOTONIC.
inline std::int64_t now() {
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000ll + time.tv_nsec;
}

}  // namespace hw::profiler::agent
